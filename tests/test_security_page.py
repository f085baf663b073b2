"""SECURITY.md names a test for each promise; the tests exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SECURITY.md").read_text()


def promises(page: str) -> list[str]:
    """The rows of the first table, without its head."""
    table = page[page.index("| promise | shown by |") :].split("\n\n")[0]
    return table.splitlines()[2:]


def missing(row: str) -> list[str]:
    """What a promise names and nobody has; the promise itself where it names nothing at all."""
    names = re.findall(r"`([^`]+)`", row.removesuffix("|").rsplit(" | ", 1)[1])
    file, found = None, []
    for named in names:
        path, _, test = named.partition("::")
        if path.endswith(".py"):
            file = ROOT / path if "/" in path or file is None else file.parent / path
        else:
            test = named
        if file is None or not file.is_file() or (test and f"def {test}(" not in file.read_text()):
            found.append(named)
    return found if names else [row]


@pytest.mark.parametrize("row", promises(PAGE))
def test_every_promise_names_tests_that_exist(row: str) -> None:
    assert not missing(row)


def test_all_promises_are_looked_at() -> None:
    assert len(promises(PAGE)) > 18
    assert PAGE.index("| promise |") == PAGE.index("| ")  # the first table


@pytest.mark.parametrize(
    "shown_by",
    [
        "",
        "nobody looked",
        "`tests/app/test_nothing.py`",
        "`tests/app/test_firewall.py::test_nothing`",
        "`tests/app/test_firewall.py`, `test_nothing`",
        "`test_nothing`",
        "`make test`",
    ],
)
def test_a_promise_without_a_test_is_noticed(shown_by: str) -> None:
    assert missing(f"| It is safe | {shown_by} |")
