"""Make a model directory from a training run: python -m train export RUN --name NAME --out DIR."""

import argparse
from pathlib import Path

from jem_core import checkpoint
from jem_core.config import make_config
from jem_core.data.dataset import Dataset
from jem_core.data.held_out import NAMED_LISTS
from jem_core.settings import BY_KEY, check_settings, parse_setting
from jem_core.trainer import Trainer
from train.fit import commands_of, notes_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="the --out directory of `python -m train fit`")
    parser.add_argument("--data", required=True, type=Path, help="the data that the run was trained on")
    parser.add_argument("--name", required=True, help="the model's name")
    parser.add_argument("--out", required=True, type=Path, help="the model directory to write")
    parser.add_argument("--checkpoint", choices=("best", "last"), default="best", help="which one (best)")
    parser.add_argument("--samples", type=int, default=64, help="buffer samples to keep (64)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"a sampling setting of the model in place of the run's, may be repeated: {', '.join(BY_KEY)}",
    )


def run(args: argparse.Namespace) -> int:
    found = checkpoint.checkpoints(args.run_directory / "checkpoints", args.checkpoint)
    if not found:
        raise ValueError(f"{args.run_directory} has no {args.checkpoint!r} checkpoint yet.")
    facts = checkpoint.read_facts(found[-1])
    notes = notes_of(args.run_directory)
    before = {"iterations": 0, "seconds": 0, "command": ""} | notes.get("before", {})
    config = make_config(facts["config"])
    dataset = Dataset.open(args.data)
    trainer = Trainer(config, dataset, args.run_directory, resume_from=found[-1])
    sampling = trainer.objective.sampling() | settings(args.set, trainer.model.levels)
    training = {
        "data_command": data_command(dataset, args.data),
        "command": "\n".join(filter(None, [before["command"], fit_commands(args.run_directory, facts["iteration"])])),
        "export_command": export_command(args),
        "hardware": notes["hardware"],
        "iterations": before["iterations"] + facts["iteration"],
        "seconds": before["seconds"] + round(facts["seconds"]),
        "checkpoint": args.checkpoint,
        "config": config.to_dict(),
    }
    about = {
        "objective": config.objective,
        "chains": config.chains,
        "data": dataset.info | {"train_images": len(dataset.indices("train"))},
        "licence": dataset.info.get("weights_licence", "MIT"),
        "sampling": sampling,
        "training": training,
    }
    trainer.bundle(args.name, about, args.samples).write(args.out)
    size = sum(path.stat().st_size for path in args.out.iterdir() if path.is_file())
    print(f"{args.out}: iteration {facts['iteration']}, {size / 1e6:.1f} MB. Next: python -m train evaluate {args.out}")
    return 0


def settings(words: list[str], levels: bool) -> dict:
    """Sampling settings from KEY=VALUE, each checked by the table."""
    chosen = {}
    for word in words:
        key, equals, text = word.partition("=")
        if key not in BY_KEY or not equals:
            raise ValueError(f"--set {word}: expected KEY=VALUE with one of {', '.join(BY_KEY)}.")
        chosen[key] = parse_setting(key, text)
    return check_settings(chosen, levels)


def export_command(args: argparse.Namespace) -> str:
    words = ["python -m train export", f"runs/{args.run_directory.name}", f"--data data/{args.data.name}"]
    words += [f"--name {args.name}", f"--out models/{args.name}", f"--checkpoint {args.checkpoint}"]
    return " ".join(words + [f"--set {word}" for word in args.set])


def fit_commands(run: Path, iteration: int) -> str:
    """One line per command; where settings changed on the way, each says up to which iteration it ran."""
    parts = [part for part in commands_of(run) if part["from"] < iteration]
    if not parts:
        raise ValueError(f"{run / 'run.json'} names no command that led to iteration {iteration}.")
    ends = [part["from"] for part in parts[1:]] + [iteration]
    lines = [f"{part['command']}{' --resume' if part['from'] else ''}" for part in parts]
    return "\n".join(f"{line}  # to iteration {end}" for line, end in zip(lines, ends, strict=True))


def data_command(dataset: Dataset, directory: Path) -> str:
    """The command that prepared the data, read off what the data say of themselves."""
    info = dataset.info
    words = ["python -m train data", info["source"], f"--size {info['image_size']}"]
    if info["source"] == "avatars":
        words.append(f"--n {info['count']}")
    else:
        words.append("--root DIR")
    named = [name for name, pairs in NAMED_LISTS.items() if [str(pair) for pair in pairs] == info["held_out"]]
    words += [f"--held-out {name}" for name in named] or [f'--held-out "{pair}"' for pair in info["held_out"]]
    return " ".join([*words, f"--seed {info['options'].get('seed', 0)}", f"--out data/{directory.name}"])
