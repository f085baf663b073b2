"""Support: the number of training images of any condition, exact, from a small file."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from jem_core.condition import Condition
from jem_core.data.support import Support

NAMES = ("A", "B", "C", "D")


@pytest.fixture
def labels() -> np.ndarray:
    return np.random.default_rng(0).integers(-1, 2, (500, 4)).astype(np.int8)


def test_every_condition_is_counted_exactly(labels: np.ndarray) -> None:
    support = Support.from_labels(NAMES, labels)
    assert support.total == 500
    assert len(support.rows) <= 3**4
    for values in product((-1, 0, 1), repeat=4):
        required = np.array(values)
        expected = int(((labels == required) | (required < 0)).all(1).sum())
        assert support.count(Condition(NAMES, values)) == expected


def test_pairs_and_triples_agree_with_the_count(labels: np.ndarray) -> None:
    support = Support.from_labels(NAMES, labels)
    assert len(support.pairs()) == 6
    assert len(support.triples()) == 4
    for names, count in [*support.pairs().items(), *support.triples().items()]:
        assert count == support.count(Condition.from_lists(NAMES, required=names))


def test_a_condition_may_name_fewer_attributes_in_another_order(labels: np.ndarray) -> None:
    support = Support.from_labels(NAMES, labels)
    expected = int(((labels[:, 2] == 1) & (labels[:, 0] == 0)).sum())
    assert support.count(Condition(("C", "A"), (1, 0))) == expected
    with pytest.raises(ValueError, match=r"no attribute 'E'.*A, B, C, D"):
        support.count(Condition(("E",), (1,)))


def test_the_file_keeps_everything(labels: np.ndarray, tmp_path: Path) -> None:
    support = Support.from_labels(NAMES, labels)
    support.save(tmp_path / "support.safetensors")
    again = Support.load(tmp_path / "support.safetensors")
    assert again.names == NAMES
    assert np.array_equal(again.rows, support.rows)
    assert np.array_equal(again.counts, support.counts)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong").write_bytes(b"not safetensors at all")
    with pytest.raises(ValueError, match="is not a table of training support"):
        Support.load(tmp_path / "wrong")
    with pytest.raises(ValueError, match="shape"):
        Support(NAMES, np.zeros((2, 3), np.int8), np.array([1, 2]))


def test_an_empty_set_supports_nothing() -> None:
    support = Support.from_labels(NAMES, np.empty((0, 4), np.int8))
    assert support.total == 0
    assert support.count(Condition.free(NAMES)) == 0
