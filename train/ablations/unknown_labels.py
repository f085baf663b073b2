"""Do rows with unknown labels help? python -m train.ablations.unknown_labels --data DIR [--objective gibbs-jem].

Half of the training rows lose half of their labels at random. They are then either used, with the unknown labels
summed out of the likelihood, or dropped. A third set loses half of the labels of every row: can it train at all? All
are judged by the micro AUROC on the test split, whose labels are complete.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from jem_core.config import TrainConfig
from jem_core.data.dataset import SPLITS, Dataset
from jem_core.data.transforms import dequantize
from jem_core.metrics import point_metrics
from jem_core.trainer import Trainer

UNUSED = len(SPLITS)  # a split that nothing asks for
SETS = {
    "all labels known": "the reference",
    "half of the rows lack half: used": "unknown labels summed out",
    "half of the rows lack half: dropped": "only the complete rows",
    "every row lacks half": "no row is complete",
}


def take_rows(dataset: Dataset, count: int, seed: int) -> Dataset:
    """The data set with only `count` training rows."""
    rows = np.random.default_rng([seed, 1]).permutation(dataset.indices("train"))
    split = dataset.split.copy()
    split[rows[count:]] = UNUSED
    return replace(dataset, split=split)


def hide_labels(dataset: Dataset, share: float, seed: int) -> tuple[Dataset, np.ndarray]:
    """A share of the training rows loses half of its labels; also returns which rows did."""
    random = np.random.default_rng([seed, 2])
    rows = random.permutation(dataset.indices("train"))
    rows = rows[: round(share * len(rows))]
    hidden = random.random((len(rows), len(dataset.names))).argsort(axis=1) < len(dataset.names) // 2
    labels = dataset.labels.copy()
    labels[rows] = np.where(hidden, -1, labels[rows])
    return replace(dataset, labels=labels), rows


def drop_rows(dataset: Dataset, rows: np.ndarray) -> Dataset:
    split = dataset.split.copy()
    split[rows] = UNUSED
    return replace(dataset, split=split)


def make_sets(dataset: Dataset, count: int, seed: int) -> dict[str, Dataset]:
    """The four training sets of one seed, over the same rows."""
    whole = take_rows(dataset, count, seed)
    some, rows = hide_labels(whole, 0.5, seed)
    every, _ = hide_labels(whole, 1.0, seed)
    return dict(zip(SETS, (whole, some, drop_rows(whole, rows), every), strict=True))


def micro_auroc(trainer: Trainer, truth: Dataset) -> float:
    """Of the averaged weights on the test split, all attributes in one pool."""
    images, labels = truth.tensors(truth.indices("test"))
    generator = torch.Generator().manual_seed(0)
    parts = [trainer.ema.predict(dequantize(part, generator)) for part in images.split(256)]
    return point_metrics(torch.cat(parts).numpy().ravel(), labels.numpy().ravel())["auroc"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a prepared data set with complete labels")
    parser.add_argument(
        "--rows", type=int, default=200, help="training rows (200): few, so that labels are what is short"
    )
    parser.add_argument("--iterations", type=int, default=1500)
    parser.add_argument("--objective", default="supervised")
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--init-gain", type=float, default=1.3)
    parser.add_argument("--cross-entropy-weight", type=float, default=1.0)
    parser.add_argument("--chain-count", type=int, default=8)
    parser.add_argument("--langevin-steps", type=int, default=3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args = parser.parse_args()
    dataset = Dataset.open(args.data)
    figures: dict[str, list[float]] = {name: [] for name in SETS}
    for seed in args.seeds:
        config = TrainConfig(
            objective=args.objective,
            width=args.width,
            iterations=args.iterations,
            langevin_steps=args.langevin_steps,
            chain_count=args.chain_count,
            buffer_size=200,
            start_rank=16,
            learning_rate=args.learning_rate,
            ema=0.99,
            init_gain=args.init_gain,
            cross_entropy_weight=args.cross_entropy_weight,
            seed=seed,
            evaluate_every=args.iterations,
            sample_steps=1,
            checkpoint_minutes=1e6,
        )
        for name, part in make_sets(dataset, args.rows, seed).items():
            with tempfile.TemporaryDirectory() as place:
                trainer = Trainer(config, part, Path(place))
                for _ in tqdm(trainer.run(), total=args.iterations, desc=f"seed {seed}, {name}", mininterval=5):
                    pass
            figures[name].append(micro_auroc(trainer, dataset))
            tqdm.write(f"seed {seed}, {name}: {figures[name][-1]:.4f}")
    print(table(figures, args.seeds))


def table(figures: dict[str, list[float]], seeds: list[int]) -> str:
    """Micro AUROC, one row per training set."""
    lines = ["| training labels | " + " | ".join(f"seed {seed}" for seed in seeds) + " | mean |"]
    lines.append("|---|" + "---|" * (len(seeds) + 1))
    for name, values in figures.items():
        cells = " | ".join(f"{value:.4f}" for value in values)
        lines.append(f"| {name} ({SETS[name]}) | {cells} | {np.mean(values):.4f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
