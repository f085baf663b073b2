"""Train the independent judge of a data set: python -m train judge --data DIR [--out DIR]."""

import argparse
from pathlib import Path

from tqdm import tqdm

from jem_core.data.dataset import Dataset
from jem_core.judge import train_judge

TABLES = ("accuracy", "balanced_accuracy", "accuracy_shuffled_labels")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", required=True, type=Path, help="a directory that `python -m train data` prepared")
    parser.add_argument("--out", type=Path, help="where the judge goes (DATA/judge, where evaluate looks for it)")
    parser.add_argument("--epochs", type=int, default=6, help="passes over the training images (%(default)s)")
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
    print(f"  {'':24s}{'accuracy':>10s}{'balanced':>10s}{'shuffled':>10s}")
    for name, accuracy in sorted(facts["accuracy"].items(), key=lambda item: item[1]):
        balanced, chance = facts["balanced_accuracy"][name], facts["accuracy_shuffled_labels"][name]
        print(f"  {name:24s}{accuracy:10.2%}{balanced:10.2%}{chance:10.2%}")
    means = [sum(facts[key].values()) / len(judge.names) for key in TABLES]
    shown = "".join(f"{mean:10.2%}" for mean in means)
    print(f"  {'mean':24s}{shown}   {facts['seconds']:.0f} s, saved in {out}")
    return 0
