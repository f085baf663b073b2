"""The pictures that stand for models and for the page are drawn from what each model opens on."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app import covers
from app.catalog import Catalog
from app.static import PREVIEW


def test_covers_and_the_preview(
    tiny_models: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr(covers, "ASSETS", tmp_path)
    monkeypatch.setattr(covers, "Catalog", lambda models, device: Catalog(models, bundled=tmp_path, device=device))
    monkeypatch.setattr("sys.argv", ["covers", *(word for path in tiny_models for word in ("--model", path))])
    covers.main()
    assert "covers of tiny." in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "covers").iterdir()] == ["tiny.webp"]
    assert Image.open(tmp_path / "covers" / "tiny.webp").size == (covers.SIDE, covers.SIDE)
    sheet = np.asarray(Image.open(tmp_path / PREVIEW).convert("RGB")).astype(int)
    assert sheet.shape == (covers.HIGH, covers.WIDE, 3)
    paper = np.array([int(covers.PAPER[i : i + 2], 16) for i in (1, 3, 5)])
    drawn = np.abs(sheet - paper).max(axis=2) > 24
    assert 0.005 < drawn[:, : covers.WIDE // 2 - 40].mean() < 0.2  # words on the left
    assert drawn[:, covers.WIDE // 2 + 40 :].mean() > 0.4  # pictures on the right
    assert not drawn[:20].any()
