"""`python -m train fit` end to end: every config, files that it leaves, Ctrl-C, torchrun, and its error messages."""

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from PIL import Image

from jem_core import checkpoint
from jem_core.config import read_config
from jem_core.data.dataset import Dataset
from tests.conftest import TINY_DENOISING, TINY_NET, TINY_RUN
from tests.jem_core.ranks import PROCESSES, torchrun
from train.__main__ import main
from train.fit import CONFIGS, find_config, pair_up, trim_log

# What makes a run small, whatever its config says; the techniques stay as they are.
SMALL = {name: TINY_RUN[name] for name in ("width", "batch_size", "buffer_size", "start_rank", "sample_steps")}
SMALL |= {"entropy_samples": 6, "picture_minutes": 1e6, "iterations": 5, "supervised_iterations": 2, "chain_count": 4}
LEVELS = {"avatars", "celeba", "shoes"}  # the configs over noise levels
PAPERS_OWN = {"paper-celeba", "paper-celeba-novel", "paper-utzappos"}  # its own settings; the others suit two cores


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No bar in the output of the tests, and the signal handlers as they were."""
    monkeypatch.setenv("TQDM_DISABLE", "1")
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
    yield
    for name, handler in before.items():
        signal.signal(name, handler)


def words(values: dict) -> list[str]:
    return [word for key, value in values.items() for word in (f"--{key.replace('_', '-')}", str(value))]


def fit(config: Path | str, dataset: Dataset, out: Path, *more: str, **changes: object) -> int:
    command = ["fit", str(config), "--data", str(dataset.directory), "--out", str(out), "--device", "cpu", *more]
    return main(command + words(changes))


@pytest.fixture
def tiny_config(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(json.dumps(TINY_RUN | {"iterations": 4}))
    return path


def rows(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("config", sorted(path.stem for path in CONFIGS.glob("*.yaml")))
def test_every_config_runs_five_iterations_at_reduced_size(config: str, tiny_dataset: Dataset, tmp_path: Path) -> None:
    changes = SMALL | {"langevin_steps": 4 if config in PAPERS_OWN else 2}
    changes |= {"supervised_iterations": 0} if config in PAPERS_OWN | LEVELS else {}
    changes |= TINY_NET if config in LEVELS else {}
    assert fit(config, tiny_dataset, tmp_path / "run", **changes) == 0
    found = rows(tmp_path / "run")
    assert [row["iteration"] for row in found] == [1, 2, 3, 4, 5]
    assert all("event" not in row for row in found)
    assert ("denoising_loss" if config in LEVELS else "energy_gap") in found[-1]  # chains ran, or noise was taken away
    assert checkpoint.newest(tmp_path / "run" / "checkpoints").name == "last-0000005"


def test_the_configs_that_must_be_there() -> None:
    small = {"paper-avatars", "paper-avatars-32", "paper-celeba-64", "paper-celeba-32"}
    assert LEVELS | PAPERS_OWN | small <= {path.stem for path in CONFIGS.glob("*.yaml")}
    for name in LEVELS:
        config = read_config(find_config(name))
        assert (config.objective, config.network) == ("denoising", "residual")


@pytest.mark.parametrize("objective", ["supervised", "jem", "gibbs-jem"])
def test_each_objective_is_one_override(objective: str, tiny_dataset: Dataset, tmp_path: Path) -> None:
    changes = SMALL | {"langevin_steps": 2, "objective": objective}
    assert fit("paper-avatars-32", tiny_dataset, tmp_path / "run", **changes) == 0
    assert ("energy_gap" in rows(tmp_path / "run")[-1]) == (objective != "supervised")


def test_denoising_wants_a_network_of_levels(
    tiny_dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    changes = SMALL | {"objective": "denoising", "supervised_iterations": 0}
    assert fit("paper-avatars-32", tiny_dataset, tmp_path / "run", **changes) == 2
    assert "objective denoising cannot train network paper; choose residual" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert fit("paper-avatars-32", tiny_dataset, tmp_path / "run", **changes | TINY_NET | {"network": "residual"}) == 0
    assert "denoising_loss" in rows(tmp_path / "run")[-1]


def test_a_run_leaves_its_files_and_goes_on(
    tiny_config: Path, tiny_dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = tmp_path / "run"
    assert fit(tiny_config, tiny_dataset, out, picture_minutes=0.0) == 0
    (first,) = json.loads((out / "run.json").read_text())["commands"]
    assert first["command"].startswith("python -m train fit tiny --data data/tiny --out runs/run")
    assert checkpoint.read_facts(checkpoint.newest(out / "checkpoints"))["config"]["iterations"] == 4
    assert rows(out)[-1]["held_out_accuracy"] > 0
    pictures = sorted(path.name for path in (out / "pictures").iterdir())
    assert pictures == [f"{kind}-000000{i}.png" for kind in ("buffer", "fresh") for i in range(1, 5)]
    assert Image.open(out / "pictures" / "fresh-0000004.png").size[1] >= 8 * 64  # one row per condition
    capsys.readouterr()
    assert fit(tiny_config, tiny_dataset, out) == 2
    assert "holds a run already; add --resume" in capsys.readouterr().err
    assert fit(tiny_config, tiny_dataset, out, "--resume", iterations=6) == 0
    assert [row["iteration"] for row in rows(out)] == [1, 2, 3, 4, 5, 6]
    commands = json.loads((out / "run.json").read_text())["commands"]
    assert [part["from"] for part in commands] == [0, 4]
    assert commands[1]["command"].endswith("--iterations 6")


def test_a_run_over_noise_levels_leaves_its_files_and_goes_on(tiny_dataset: Dataset, tmp_path: Path) -> None:
    """Pictures of fresh chains, no buffer; the loss by level in the log; and the same command goes on."""
    out, config = tmp_path / "run", tmp_path / "levels.yaml"
    config.write_text(json.dumps(TINY_RUN | TINY_DENOISING | {"iterations": 3, "picture_minutes": 0.0}))
    assert fit(config, tiny_dataset, out) == 0
    last = rows(out)[-1]
    assert {"denoising_loss", "cross_entropy", "accuracy", "held_out_accuracy", "denoising_at_0.05"} <= set(last)
    assert sorted(path.name for path in (out / "pictures").iterdir()) == [f"fresh-000000{i}.png" for i in range(1, 4)]
    assert not checkpoint.read_ranks(checkpoint.newest(out / "checkpoints"), "buffer")
    assert fit(config, tiny_dataset, out, "--resume", iterations=5) == 0
    assert [row["iteration"] for row in rows(out)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        ("avatars-33", {}, "no config 'avatars-33'; give a YAML file or one of avatars, celeba, paper-avatars"),
        ("paper-avatars-32", {"langevin_step": 3}, "no config key 'langevin_step'; did you mean langevin_steps"),
        ("paper-avatars-32", {"iterations": "soon"}, "iterations is 'soon'; expected a whole number"),
        (
            "paper-avatars-32",
            {"objective": "gan"},
            "no objective 'gan'; choose one of supervised, jem, gibbs-jem, denoising",
        ),
        ("avatars", {"widths": "[4, 8]"}, "The widths are [4, 8] and the blocks [1, 1, 2, 1]; expected as many"),
    ],
)
def test_mistakes_are_named(
    config: str, changes: dict, message: str, tiny_dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert fit(config, tiny_dataset, tmp_path / "run", **changes) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_more_mistakes(tiny_config: Path, tiny_dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["fit", str(tiny_config), "--data", str(tmp_path / "none"), "--out", str(tmp_path / "run")]) == 2
    assert "is not a data set" in capsys.readouterr().err
    assert fit(tiny_config, tiny_dataset, tmp_path / "run", "--resume") == 2
    assert "holds no run to resume" in capsys.readouterr().err
    assert fit(tiny_config, tiny_dataset, tmp_path / "run", "--ema") == 2
    assert "found '--ema' without a value" in capsys.readouterr().err


def test_an_absurd_rate_ends_with_its_message(
    tiny_config: Path, tiny_dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    absurd = {"learning_rate": 200.0, "grad_norm_clip": 0.0, "guard_window": 2, "guard_trips": 1, "iterations": 40}
    assert fit(tiny_config, tiny_dataset, tmp_path / "run", **absurd) == 1
    said = capsys.readouterr()
    assert re.search(r"Training diverged at iteration \d+ \(.*\) after 1 roll-backs", said.err)
    assert re.search(r"Iteration \d+: .* Went back to iteration 0; the rate is now 0\.5 times", said.out)
    assert sum("event" in row for row in rows(tmp_path / "run")) == 1


def start(*arguments: str) -> None:
    os.environ["TQDM_DISABLE"] = "1"
    raise SystemExit(main(["fit", *arguments]))


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("name", "kind"),
    [(signal.SIGINT, {}), (signal.SIGTERM, {}), (signal.SIGINT, TINY_DENOISING)],
    ids=["SIGINT", "SIGTERM", "SIGINT-denoising"],
)
def test_ctrl_c_saves_and_the_run_goes_on_bit_for_bit(
    name: signal.Signals, kind: dict, tiny_config: Path, tiny_dataset: Dataset, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    tiny_config.write_text(json.dumps(TINY_RUN | kind))
    long = words({"iterations": 5000, "schedule": "constant", "threads": 1})
    process = PROCESSES.Process(
        target=start,
        args=(str(tiny_config), "--data", str(tiny_dataset.directory), "--out", str(out), "--device", "cpu", *long),
    )
    process.start()
    while not (out / "metrics.jsonl").is_file() or len((out / "metrics.jsonl").read_text().splitlines()) < 2:
        assert process.is_alive()
        time.sleep(0.02)
    os.kill(process.pid, name)
    process.join()
    assert process.exitcode == 130
    reached = checkpoint.read_facts(checkpoint.newest(out / "checkpoints"))["iteration"]
    assert rows(out)[-1]["iteration"] == reached
    end = {"iterations": reached + 2, "schedule": "constant"}
    assert fit(tiny_config, tiny_dataset, out, "--resume", **end) == 0
    assert fit(tiny_config, tiny_dataset, tmp_path / "whole", **end) == 0
    places = [checkpoint.newest(place / "checkpoints") for place in (out, tmp_path / "whole")]
    for part in ("model", "ema", "optimizer", *([] if kind else ["buffer-rank0"]), "streams-rank0"):
        a, b = (checkpoint.read_tensors(place, part) for place in places)
        assert all(torch.equal(a[key], b[key]) for key in b), part


def test_torchrun_trains_on_two_ranks(tiny_config: Path, tiny_dataset: Dataset, tmp_path: Path) -> None:
    command = ["fit", str(tiny_config), "--data", str(tiny_dataset.directory), "--out", str(tmp_path / "run")]
    torchrun(2, "train", *command, "--device", "cpu")
    assert [row["iteration"] for row in rows(tmp_path / "run")] == [1, 2, 3, 4]  # one rank writes, once
    newest = checkpoint.newest(tmp_path / "run" / "checkpoints")
    assert checkpoint.read_facts(newest)["ranks"] == 2
    assert [len(part["images"]) for part in checkpoint.read_ranks(newest, "buffer")] == [8, 8]  # half a buffer each
    assert fit(tiny_config, tiny_dataset, tmp_path / "run", "--resume", iterations=6) == 0  # and one rank goes on
    assert rows(tmp_path / "run")[-1]["iteration"] == 6


def test_words_to_overrides() -> None:
    assert pair_up(["--a", "1", "--b=2", "--c-d", "-3"]) == {"a": "1", "b": "2", "c-d": "-3"}
    with pytest.raises(ValueError, match="found 'a' without --"):
        pair_up(["a", "1"])


def test_the_log_forgets_what_the_checkpoint_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    trim_log(path, 3)  # there is none yet
    lines = [json.dumps({"iteration": i}) for i in range(1, 6)]
    path.write_text("\n".join(lines) + '\n{"iteration": 6, "lo')  # killed in the middle of a line
    trim_log(path, 3)
    assert path.read_text().splitlines() == lines[:3]
    assert path.read_text().endswith("\n")
