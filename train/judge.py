"""Train the independent judge of a data set: python -m train judge --data DIR [--out DIR]."""

import argparse
from pathlib import Path

from tqdm import tqdm

from jem_core.data.dataset import Dataset
from jem_core.judge import train_judge


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", required=True, type=Path, help="a directory that `python -m train data` prepared")
    parser.add_argument("--out", type=Path, help="where the judge goes (DATA/judge, where evaluate looks for it)")
    parser.add_argument("--epochs", type=int, default=4, help="passes over the training images (%(default)s)")
    parser.add_argument("--width", type=int, default=16, help="filters of the first layer (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    dataset = Dataset.open(args.data)
    bar = tqdm(unit="step", dynamic_ncols=True)

    def show(step: int, steps: int, loss: float) -> None:
        bar.total = steps
        bar.set_postfix({"loss": f"{loss:.3f}"}, refresh=False)
        bar.update(step - bar.n)

    judge = train_judge(dataset, args.epochs, args.width, args.seed, progress=show)
    bar.close()
    out = args.out or args.data / "judge"
    judge.save(out)
    facts = judge.facts
    print(f"Right on {facts['tested_on']['images']} real images that it never saw, and against shuffled labels:")
    for name, accuracy in sorted(facts["accuracy"].items(), key=lambda item: item[1]):
        print(f"  {name:24s} {accuracy:7.2%} {facts['accuracy_shuffled_labels'][name]:10.2%}")
    mean, shuffled = facts["mean_accuracy"], facts["mean_accuracy_shuffled_labels"]
    print(f"  {'mean':24s} {mean:7.2%} {shuffled:10.2%}   {facts['seconds']:.0f} s, saved in {out}")
    return 0
