"""The README's figures are those of the bundled models' evaluation files."""

from pathlib import Path

import pytest

from train.results import BEGIN, END, MODELS, evaluations, replaced, results_table

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_holds_the_figures_of_the_files() -> None:
    text = README.read_text(encoding="utf-8")
    assert evaluations(MODELS), "no bundled model has an evaluation"
    assert replaced(text, results_table(MODELS)) == text, "run `python -m train results`"


def test_every_bundled_model_is_complete_and_small() -> None:
    sizes = {}
    for directory in (path for path in MODELS.iterdir() if path.is_dir()):
        for name in ("config.json", "model.safetensors", "evaluation.json", "calibration.json", "README.md"):
            assert (directory / name).is_file(), f"{directory.name} lacks {name}"
        files = {path.name: path.stat().st_size for path in directory.iterdir()}
        assert max(files.values()) < 10e6, f"{directory.name}: {files}"  # a Space wants larger ones in Git LFS
        sizes[directory.name] = sum(files.values())
    assert sum(sizes.values()) < 70e6


def test_a_text_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="once each"):
        replaced("no marks here", "| table |")
    assert replaced(f"a {BEGIN} old {END} b", "new") == f"a {BEGIN}\nnew\n{END} b"
