"""Train a model: python -m train fit CONFIG --data DIR --out DIR [--resume] [--key value ...]."""

import argparse
import json
import platform
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import torch
from tqdm import tqdm

from jem_core import checkpoint, distributed
from jem_core.bundle import write_json
from jem_core.config import read_config
from jem_core.data.dataset import Dataset
from jem_core.divergence import TrainingDiverged
from jem_core.grids import condition_sheet, grid, save_picture, shown_conditions
from jem_core.hub import load
from jem_core.trainer import Trainer

CONFIGS = Path(__file__).parent / "configs"
TAKES_OVERRIDES = True
SHOWN = ("accuracy", "denoising_loss", "energy_gap", "grad_norm")  # beside the bar


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(sorted(path.stem for path in CONFIGS.glob("*.yaml")))
    parser.add_argument("config", help=f"a YAML file, or one of {names}")
    parser.add_argument("--data", required=True, type=Path, help="a directory that `python -m train data` prepared")
    parser.add_argument("--out", required=True, type=Path, help="where checkpoints, metrics and pictures go")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint in --out")
    parser.add_argument("--begin-with", metavar="MODEL", help="begin with the weights of this model")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.epilog = "Every config key can be overridden: --learning-rate 1e-4 --objective jem."


def run(args: argparse.Namespace) -> int:
    config = read_config(find_config(args.config), pair_up(args.overrides))
    dataset = Dataset.open(args.data)
    if not args.resume and checkpoint.newest(args.out / "checkpoints"):
        raise ValueError(f"{args.out} holds a run already; add --resume to go on with it, or choose another --out.")
    trainer = Trainer(config, dataset, args.out, args.device, resume=args.resume)
    if args.begin_with and trainer.iteration == 0:
        trainer.begin_with(load(args.begin_with).model)
    watcher = Watcher(trainer, args) if trainer.rank == 0 else None
    stop_on_signals(trainer)
    try:
        for metrics in trainer.run():
            if watcher:
                watcher.show(metrics)
        if trainer.iteration < config.iterations:
            tqdm.write(f"Saved iteration {trainer.iteration}. To go on: the same command with --resume ({args.out}).")
            return 130
    except TrainingDiverged as error:
        tqdm.write(str(error), file=sys.stderr)
        return 1
    finally:
        if watcher:
            watcher.close()
        distributed.stop_ranks()
    return 0


def stop_on_signals(trainer: Trainer) -> None:
    """Ctrl-C (or SIGTERM) ends the run after the iteration under way: what is saved is whole, on every rank."""

    def stop(*_: object) -> None:
        if trainer.stopping and trainer.ranks == 1:  # asked twice; torchrun itself signals its ranks more than once
            raise KeyboardInterrupt
        trainer.stopping = True

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, stop)


def find_config(name: str) -> Path:
    for path in (Path(name), CONFIGS / f"{name}.yaml"):
        if path.is_file():
            return path
    choices = ", ".join(sorted(path.stem for path in CONFIGS.glob("*.yaml")))
    raise ValueError(f"There is no config {name!r}; give a YAML file or one of {choices}.")


def pair_up(words: list[str]) -> dict[str, str]:
    """--key value and --key=value as a dictionary."""
    values: dict[str, str] = {}
    words = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    while words:
        key = words.pop(0)
        if not key.startswith("--") or not words:
            raise ValueError(f"Expected --key value, but found {key!r} without {'--' if words else 'a value'}.")
        values[key[2:]] = words.pop(0)
    return values


class Watcher:
    """The bar, the metrics file, TensorBoard where it is installed, and a picture every few minutes."""

    def __init__(self, trainer: Trainer, args: argparse.Namespace) -> None:
        self.trainer, self.out = trainer, args.out
        commands = [part for part in commands_of(self.out) if part["from"] < trainer.iteration]
        if not commands or commands[-1]["command"] != plain_command(args):
            commands.append({"from": trainer.iteration, "command": plain_command(args)})
        notes = {"commands": commands, "hardware": hardware(), "before": training_before(self.out, args.begin_with)}
        write_json(self.out / "run.json", notes)
        trim_log(self.out / "metrics.jsonl", trainer.iteration)
        self.log = (self.out / "metrics.jsonl").open("a")
        self.board = None
        with suppress(ImportError):
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(self.out / "tensorboard")
        self.bar = tqdm(total=trainer.config.iterations, initial=trainer.iteration, unit="it", dynamic_ncols=True)
        self.pictured = time.monotonic()

    def show(self, metrics: dict) -> None:
        now = self.trainer.iteration
        if "event" in metrics:
            tqdm.write(metrics["event"])
        self.log.write(json.dumps({"iteration": now} | {k: _short(v) for k, v in metrics.items()}) + "\n")
        self.log.flush()
        if self.board:
            for name, value in metrics.items():
                if not isinstance(value, str):
                    self.board.add_scalar(name, value, now)
        shown = {name: metrics[name] for name in SHOWN if name in metrics}
        self.bar.set_postfix({name: f"{value:.3g}" for name, value in shown.items()}, refresh=False)
        self.bar.update(now - self.bar.n)
        if time.monotonic() - self.pictured > 60 * self.trainer.config.picture_minutes:
            self.picture()
            self.pictured = time.monotonic()

    def picture(self) -> None:
        """Fresh conditional samples, one row per condition, held-out pairs last; and a part of the buffer."""
        trainer = self.trainer
        if not trainer.objective.generates:
            return
        about = {"sampling": trainer.objective.sampling(), "data": trainer.dataset.info}
        bundle = trainer.bundle("preview", about, samples=64)
        folder = self.out / "pictures"
        folder.mkdir(exist_ok=True)
        conditions = shown_conditions(bundle)
        scale = max(1, 64 // bundle.model.image_size)
        save_picture(
            condition_sheet(bundle, conditions, 8, seed=0, scale=scale), folder / f"fresh-{trainer.iteration:07d}.png"
        )
        if bundle.buffer is not None:
            rows = list(bundle.buffer.images[:64].split(16))
            save_picture(grid(rows, scale=scale), folder / f"buffer-{trainer.iteration:07d}.png")

    def close(self) -> None:
        self.bar.close()
        self.log.close()
        if self.board:
            self.board.close()


def trim_log(path: Path, iteration: int) -> None:
    """Forget what a killed run wrote after the checkpoint that is resumed, half a last line included."""
    if not path.is_file():
        return
    kept = []
    for line in path.read_text().splitlines():
        with suppress(ValueError):
            if json.loads(line)["iteration"] <= iteration:
                kept.append(line + "\n")
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text("".join(kept))
    partial.replace(path)


def notes_of(run: Path) -> dict:
    path = run / "run.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def commands_of(run: Path) -> list[dict]:
    """The commands that made a run, each with the iteration from which on it was in force."""
    return notes_of(run).get("commands", [])


def training_before(run: Path, model: str | None) -> dict:
    """What the model that a run began with had been through: its card must not call the sum a shorter training."""
    kept = notes_of(run).get("before")
    if kept is not None or model is None:
        return kept or {}
    training = load(model).config.get("training", {})
    return {"iterations": 0, "seconds": 0, "command": ""} | {
        key: training[key] for key in ("iterations", "seconds", "command") if key in training
    }


def plain_command(args: argparse.Namespace) -> str:
    """The command as anybody would type it: folders by their names, without the accident of a --resume."""
    config = Path(args.config).stem if args.config.endswith(".yaml") else args.config
    words = ["python -m train fit", config, f"--data data/{args.data.name}", f"--out runs/{args.out.name}"]
    if args.begin_with:
        model = Path(args.begin_with)
        words.append(f"--begin-with {f'models/{model.name}' if model.is_dir() else model}")
    return " ".join(words + args.overrides)


def hardware() -> str:
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or platform.machine()
    threads = torch.get_num_threads()
    return f"{threads} {'thread' if threads == 1 else 'threads'}, {device}"


def _short(value: float | str) -> float | str:
    return value if isinstance(value, str) else float(f"{value:.5g}")
