"""Plots that cost time are drawn once, and anew when a file of theirs changes."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from app import compare
from app.catalog import Catalog
from app.limits import Limits
from app.runtime import Runtime, install


def test_the_same_plots_are_drawn_once(tiny_models: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(Runtime(Catalog(tiny_models, bundled=tmp_path, device="cpu"), Limits()))
    drawn, draw = [], compare.draw

    def counted(*given: object) -> list:
        drawn.append(given)
        return draw(*given)

    monkeypatch.setattr(compare, "draw", counted)
    key = next(iter(compare.families(compare.current().catalog)))

    def open_screen(theme: str) -> dict:
        return compare.opened(SimpleNamespace(_data={"order": 1, "family": key, "theme": theme}))[0]

    for _ in range(3):
        assert open_screen("light")["kind"] == "compare"
    assert len(drawn) == 1
    first, second = (compare.opened(SimpleNamespace(_data={"order": 1, "family": key})) for _ in range(2))
    first[1].pop("value")  # as Gradio does when it sends an update
    assert "value" in second[1]
    assert "value" in compare.opened(SimpleNamespace(_data={"order": 1, "family": key}))[1]
    open_screen("dark")
    assert len(drawn) == 2
    report = Path(tiny_models[0]) / "pairs.json"
    try:
        report.write_text(json.dumps({}))
        open_screen("light")
        assert len(drawn) == 3
    finally:
        report.unlink()
