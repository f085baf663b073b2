"""The evaluation of a small model from end to end: files, determinism, card, report, refusals."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from jem_core.bundle import Bundle
from jem_core.judge import train_judge
from train.__main__ import main
from train.card import card, metadata, shown
from train.report import write_report

TIMES = ("seconds", "right_a_second", "free_seconds")


@pytest.fixture(scope="module")
def measured(tiny_bundle, tiny_dataset, tmp_path_factory) -> Path:
    """A copy of the small model, evaluated with every option."""
    folder = tmp_path_factory.mktemp("evaluated")
    train_judge(tiny_dataset, epochs=1, width=4).save(folder / "judge")
    for name in ("model", "jem"):
        shutil.copytree(tiny_bundle.directory, folder / name)
    assert evaluate(folder, tiny_dataset, "--jem", str(folder / "jem"), "--report", str(folder / "report.html")) == 0
    return folder


def evaluate(folder: Path, dataset, *more: str) -> int:
    words = ["evaluate", str(folder / "model"), "--data", str(dataset.directory), "--judge", str(folder / "judge")]
    return main([*words, "--samples", "10", "--other", str(dataset.directory), "--heatmap", "1", *more])


def read(folder: Path, name: str = "evaluation") -> dict:
    return json.loads((folder / "model" / f"{name}.json").read_text())


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(entry) for key, entry in value.items() if key not in TIMES}
    return [without_times(entry) for entry in value] if isinstance(value, list) else value


def test_every_figure_has_its_counts(measured: Path):
    found = read(measured)
    synthesis = found["synthesis"]
    assert len(synthesis["singles"]["conditions"]) == 6
    for name in ("singles", "seen_pairs", "held_out_pairs", "triples"):
        for row in synthesis[name]["conditions"]:
            assert row["chains"] == row["judged_right"]["of"] == 10
            assert row["seconds"] > 0
    assert synthesis["held_out_pairs"]["conditions"][0]["training_images"] == 0
    assert synthesis["held_out_pairs_best_of_10"]["conditions"][0]["chains"] == 1
    assert synthesis["start"] == "conditional"
    assert len(synthesis["samplers_and_starts"]) == 8
    plain = found["synthesis_informed"]
    assert plain["start"] == "informed"
    assert [plain[name]["conditions"][0]["chains"] for name in ("singles", "held_out_pairs")] == [2, 5]
    for part in (synthesis, plain):
        assert part["seen_pairs"]["conditions"][0]["judged_right_start"]["of"] == 400
    assert found["fidelity"]["real_images"]["frechet_distance"] < found["fidelity"]["start_noise"]["frechet_distance"]
    assert found["factored_jem"]["held_out_pairs"]["conditions"][0]["route"]["of"] == 50
    assert found["gate"]["worst_auroc"] == read(measured, "calibration")["gate"]["worst_auroc"]
    assert len(read(measured, "pairs")["pairs"]) == 15
    assert Bundle.read(measured / "model").evaluation == found


def test_prediction_is_measured_on_the_test_images(measured: Path, tiny_dataset):
    found = read(measured)["prediction"]
    assert found["images"] == len(tiny_dataset.indices("test"))
    assert sum(read(measured, "calibration")["all"]["bins"]["count"]) == found["labels"]
    assert set(read(measured, "curves")["roc"]) == {"micro", *tiny_dataset.names}


def test_same_seed_same_evaluation(measured: Path, tiny_dataset, capsys):
    first = [without_times(read(measured, name)) for name in ("evaluation", "calibration", "curves", "pairs")]
    evaluate(measured, tiny_dataset, "--jem", str(measured / "jem"))
    again = [without_times(read(measured, name)) for name in ("evaluation", "calibration", "curves", "pairs")]
    for one in (first[0], again[0]):
        one.pop("command")
    assert first == again
    assert "judged right, held-out pairs, best of 10" in capsys.readouterr().out


def numbers(value) -> list[float]:
    if isinstance(value, dict):
        return [n for entry in value.values() for n in numbers(entry)]
    if isinstance(value, list):
        return [n for entry in value for n in numbers(entry)] + [len(value)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def unaccounted(text: str, files: list[dict]) -> list[str]:
    """Numbers of a text that no file holds, as they are or in percent, at the digits shown."""
    known = [n for file in files for n in numbers(file)]
    missing = []
    for word in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", text):
        plain = word.replace(",", "")
        digits = len(plain.partition(".")[2])
        if not any(plain in (str(n), f"{n:.{digits}f}", f"{100 * n:.{digits}f}") for n in known):
            missing.append(word)
    return missing


def prose(text: str) -> str:
    """A card without its code."""
    return re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)


def test_every_number_of_the_card_stands_in_the_files(measured: Path):
    text = (measured / "model" / "README.md").read_text()
    files = [read(measured), json.loads((measured / "model" / "config.json").read_text())["model"]]
    assert len(re.findall(r"\d", prose(text))) > 200
    assert unaccounted(prose(text), files) == []


def test_a_wrong_number_would_be_noticed(measured: Path):
    text = prose((measured / "model" / "README.md").read_text())
    accuracy = read(measured)["prediction"]["micro"]["accuracy"]["value"]
    wrong = text.replace(f"{100 * accuracy:.1f} %", "12.3456 %", 1)
    assert wrong != text
    assert unaccounted(wrong, [read(measured)])


def test_metadata_is_what_the_hub_reads(measured: Path):
    from huggingface_hub import ModelCard

    content = ModelCard((measured / "model" / "README.md").read_text()).data
    assert content.license == "mit"
    micro = read(measured)["prediction"]["micro"]
    values = {result.metric_name: result.metric_value for result in content.eval_results}
    assert values["auroc, micro"] == micro["auroc"]["value"]
    assert (
        values["judged right, held-out pairs"]
        == read(measured)["synthesis"]["held_out_pairs"]["summary"]["judged_right"]["value"]
    )


def test_celeba_weights_carry_their_terms(measured: Path):
    config = json.loads((measured / "model" / "config.json").read_text())
    config["data"] |= {"source": "celeba", "faces": True, "licence": "non-commercial research", "credit": "CelebA."}
    config["licence"] = "non-commercial research only, trained on CelebA"
    front = yaml.safe_load(metadata(config, read(measured)).strip("-\n"))
    assert front["license"] == "other"
    text = card(config, read(measured))
    assert "on-commercial research only, trained on CelebA" in text.split("## ")[0]
    assert "opinions of its annotators" in text


def test_no_directory_of_a_machine_is_shown(measured: Path):
    assert shown("python -m train fit tiny --data /home/me/data/tiny --out /tmp/run") == (
        "python -m train fit tiny --data tiny --out run"
    )
    for name in ("README.md", "evaluation.json", "calibration.json"):
        assert str(measured) not in (measured / "model" / name).read_text()


def test_report_stands_alone(measured: Path):
    page = (measured / "report.html").read_text()
    own = re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.DOTALL)  # plotly's own source names addresses
    assert not re.findall(r"(?:src|href)=\"(?!data:)", own)
    assert "data:image/png;base64," in page
    figures = json.loads(re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)[1].replace("<\\/", "</"))
    assert {"reliability", "roc", "pr"} == set(figures["Red"])
    assert len(figures["pairs"]["data"][0]["z"]) == 6


def test_supervised_models_are_measured_without_a_judge(measured: Path, tiny_dataset, tmp_path):
    shutil.copytree(measured / "model", tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text()) | {"objective": "supervised"}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    words = ["evaluate", str(tmp_path / "model"), "--data", str(tiny_dataset.directory)]
    assert main([*words, "--report", str(tmp_path / "report.html")]) == 0
    found = json.loads((tmp_path / "model" / "evaluation.json").read_text())
    assert "synthesis" not in found
    assert found["prediction"] | {"seconds": 0} == read(measured)["prediction"] | {"seconds": 0}
    assert (tmp_path / "report.html").is_file()


def test_quick_prints_and_writes_nothing(measured: Path, tiny_dataset, capsys):
    before = {path.name: path.stat().st_mtime_ns for path in (measured / "model").iterdir()}
    assert evaluate(measured, tiny_dataset, "--quick", "--samples", "2") == 0
    printed = capsys.readouterr().out
    assert "HELD OUT PAIRS" in printed
    assert "Striped" in printed
    assert {path.name: path.stat().st_mtime_ns for path in (measured / "model").iterdir()} == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--samples", "0"], "at least 1"),
        (["--judge", "nowhere"], "holds no judge"),
        (["--data", "nowhere"], "is not a data set"),
    ],
)
def test_refusals_are_sentences(measured: Path, tiny_dataset, words: list[str], message: str, capsys):
    assert evaluate(measured, tiny_dataset, "--quick", *words) == 2
    assert message in capsys.readouterr().err


def test_no_evaluation_no_card(tiny_bundle, tmp_path, capsys):
    shutil.copytree(tiny_bundle.directory, tmp_path / "model")
    assert main(["card", str(tmp_path / "model")]) == 2
    assert "evaluation.json" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"evaluation\.json"):
        write_report(tmp_path / "model", tmp_path / "page.html")


def test_triples_take_the_place_of_those_that_were_there(measured: Path, tiny_dataset, tmp_path):
    shutil.copytree(measured, tmp_path / "copy")
    before = read(tmp_path / "copy")
    assert evaluate(tmp_path / "copy", tiny_dataset, "--add", "--triples", "--samples", "3") == 0
    after = read(tmp_path / "copy")
    for part, chains in (("synthesis", 3), ("synthesis_informed", 2)):
        assert after[part]["triples"]["conditions"][0]["chains"] == chains
        assert after[part]["seen_pairs"] == before[part]["seen_pairs"]
    assert after["judge_of_additions"] == before["judge"]


def test_extras_are_added_to_what_is_there(measured: Path, tiny_dataset, tmp_path, capsys):
    shutil.copytree(measured, tmp_path / "copy")
    folder = tmp_path / "copy"
    before = read(folder)
    (folder / "model" / "pairs.json").unlink()
    assert (
        evaluate(
            folder, tiny_dataset, "--add", "--jem", str(folder / "jem"), "--samples", "4", "--edits", "2", "--free", "7"
        )
        == 0
    )
    after = read(folder)
    assert (before["fidelity"]["samples"]["images"], after["fidelity"]["samples"]["images"]) == (50, 7)
    assert after["prediction"] == before["prediction"]
    assert after["synthesis"] == before["synthesis"]
    assert after["factored_jem"] != before["factored_jem"]
    rows = {row["key"]: row["value"] for row in after["measures"]}
    assert (
        rows["factored_direct_seen_pairs"] == after["factored_jem"]["seen_pairs"]["summary"]["direct"]["judged_right"]
    )
    assert rows["edits"] == after["editing"]["judged_right"]["value"]
    assert after["editing"]["judged_right"]["of"] == 2 * 4
    assert (folder / "model" / "pairs.json").is_file()
    assert after["added_by"].startswith("python -m train evaluate")
    words = ["evaluate", str(folder / "model"), "--data", str(tiny_dataset.directory), "--judge", str(folder / "judge")]
    assert main([*words, "--add"]) == 2
    assert "--prediction or, for one that samples, --triples" in capsys.readouterr().err
    (folder / "model" / "calibration.json").unlink()
    after["prediction"] = {}
    (folder / "model" / "evaluation.json").write_text(json.dumps(after))
    assert main([*words, "--add", "--prediction"]) == 0
    again = read(folder)
    assert again["prediction"]["micro"] == before["prediction"]["micro"]
    assert (again["synthesis"], again["editing"]) == (before["synthesis"], after["editing"])
    assert (folder / "model" / "calibration.json").is_file()
