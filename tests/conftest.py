"""Small real things that many tests need: a data set, a model directory."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jem_core.buffer import JointBuffer
from jem_core.bundle import Bundle
from jem_core.data.dataset import Dataset, write_dataset
from jem_core.data.held_out import parse
from jem_core.data.source import Source, random_split
from jem_core.gaussian import LowRankGaussian
from jem_core.networks.paper import PaperModel
from jem_core.networks.residual import ResidualModel
from tests.jem_core.loopback_hub import LoopbackHub

HERE = Path(__file__).parent
# What `--quick` (make test-quick) runs of the app; of jem_core it runs all but the files that take longest.
QUICK_APP = ("addresses", "catalog", "inbox", "limits", "mailbox", "recipe", "settings", "walk")
LONG_CORE = (
    *("denoising", "levels_exact", "samplers_exact", "resume", "trainer", "lost_rank", "roll_back", "images"),
    *("avatars_readable", "avatars", "distributed"),
)
# A training run of a second: everything on, everything small.
TINY_RUN = {
    "width": 4,
    "batch_size": 8,
    "langevin_steps": 2,
    "buffer_size": 16,
    "start_rank": 4,
    "sample_steps": 2,
    "entropy_samples": 6,
    "warmup_iterations": 2,
    "evaluate_every": 10,
    "checkpoint_minutes": 1e6,
    "picture_minutes": 1e6,
}
# What makes the same run one of noise levels.
TINY_NET = {"widths": [4, 8], "blocks": [1, 1], "fold": 2, "attention": 8, "ascent": 1}
TINY_DENOISING = {"objective": "denoising", "network": "residual", **TINY_NET}
TINY_NAMES = ("Red", "Bright", "Striped", "Left", "Dotted", "Framed")


def tiny_pictures(n: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures whose six attributes are plain to see: colour, brightness, stripes, a patch, dots, a frame."""
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, len(TINY_NAMES))) < 0.4).astype(np.int8)
    images = np.empty((n, 3, size, size), np.uint8)
    for image, (red, bright, striped, left, dotted, framed) in zip(images, labels, strict=True):
        picture = np.full((3, size, size), 150 if bright else 70, np.int64)
        picture[0] += 70 * int(red)
        picture[:, :: max(1, size // 8)] -= 40 * int(striped)
        picture[2, size // 4 : size // 2, : size // 4] += 90 * int(left)
        picture[1, size // 2 :: 4, ::4] += 80 * int(dotted)
        if framed:
            picture[:, [0, -1], :] = picture[:, :, [0, -1]] = 10
        image[:] = (picture + rng.integers(-10, 11, picture.shape)).clip(0, 255)
    return images, labels


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="unit tests alone, in less than two minutes")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --quick: no browsers, crowds, whole trainings or wheels."""
    if not config.getoption("--quick") or HERE not in collection_path.parents:
        return None
    place, name = collection_path.relative_to(HERE).parts[0], collection_path.stem.removeprefix("test_")
    if collection_path.is_dir():
        return True if place not in ("app", "jem_core") else None  # the others' conftest.py may need other packages
    kept = {"app": name in QUICK_APP, "jem_core": name not in LONG_CORE, "test_house_rules.py": True}
    return True if not kept.get(place, False) else None


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Bits are promised for the same number of threads: some processors add up in another order with two."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny_dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """400 pictures of 32 px with six attributes; Red + Striped is held out."""
    images, labels = tiny_pictures(400, 32, seed=0)
    source = Source(
        name="tiny",
        names=TINY_NAMES,
        n=len(images),
        image_size=32,
        rows=zip(images, labels, strict=True),
        split=random_split(len(images), seed=0, val=0.2, test=0.2),
    )
    return write_dataset(tmp_path_factory.mktemp("data") / "tiny", source, [parse("Red + Striped")])


def written(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    directory = tmp_path_factory.mktemp("models") / bundle.name
    bundle.write(directory)
    return Bundle.read(directory)


@pytest.fixture(scope="session")
def tiny_bundle(tiny_dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A complete model directory of a small net with random weights (untrained: it knows nothing)."""
    torch.manual_seed(0)
    images, labels = tiny_dataset.tensors(tiny_dataset.indices("train"))
    buffer = JointBuffer.empty(64, 32, len(TINY_NAMES))
    generator = torch.Generator().manual_seed(0)
    buffer.push((images[:64].float() + 0.5) / 256, labels[:64], torch.full_like(labels[:64], -1), generator)
    bundle = Bundle(
        name="tiny",
        config={"objective": "gibbs-jem", "data": tiny_dataset.info, "sampling": {"steps": 5}},
        model=PaperModel(TINY_NAMES, image_size=32, width=4),
        gaussian=LowRankGaussian.fit(images, labels, rank=8),
        buffer=buffer,
        support=tiny_dataset.support(),
    )
    return written(bundle, tmp_path_factory)


@pytest.fixture(scope="session")
def tiny_levels(tiny_bundle: Bundle, tiny_dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The same with noise levels: a small residual net with random weights."""
    torch.manual_seed(0)
    bundle = replace(
        tiny_bundle,
        name="tiny-levels",
        config={"objective": "denoising", "data": tiny_dataset.info, "sampling": {"steps": 6, "guidance": 2.0}},
        model=ResidualModel(TINY_NAMES, image_size=32, **TINY_NET),
        buffer=None,
    )
    return written(bundle, tmp_path_factory)


@pytest.fixture(scope="module")
def hub() -> Iterator[LoopbackHub]:
    hub = LoopbackHub()
    hub.start()
    yield hub
    hub.stop()


@pytest.fixture(scope="session")
def tiny_rival(tiny_bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A factored JEM with the same attributes, to stand beside the first."""
    torch.manual_seed(1)
    bundle = replace(
        tiny_bundle,
        name="tiny-jem",
        config={**tiny_bundle.config, "objective": "jem"},
        model=PaperModel(TINY_NAMES, image_size=32, width=4),
    )
    return written(bundle, tmp_path_factory)
