"""SECURITY.md names a test for each promise; the tests exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_promise_names_tests_that_exist() -> None:
    rows = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("| ")][1:]
    promises = [row for row in rows if "tests/" in row]
    assert len(promises) > 12
    for row in promises:
        file = None
        for named in re.findall(r"`([^`]+)`", row.rsplit(" | ", 1)[1]):
            path, _, test = named.partition("::")
            if path.endswith(".py"):
                file = ROOT / path if "/" in path else file.parent / path
                assert file.is_file(), named
            else:
                test = named
            assert not test or f"def {test}(" in file.read_text(), named
