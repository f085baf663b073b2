"""How much faster are two ranks? Part of `python -m train bench`, and alone: python -m train.ranks --data DIR.

Counts training images per second of one rank with one thread, and of two ranks with one thread each: with the same
batch on each rank (so twice the batch in all), and with the same batch in all (so half of it on each). For idle cores.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jem_core import distributed
from jem_core.config import read_config
from jem_core.data.dataset import Dataset
from jem_core.trainer import Trainer
from train.fit import find_config


def measure(data: Path, config: str, batch: int, chains: int, iterations: int) -> None:
    """What each rank runs: a warm-up, then iterations by the clock; rank 0 says what came out."""
    values = {"batch_size": batch, "chain_count": chains, "threads": 1, "supervised_iterations": 0}
    with tempfile.TemporaryDirectory() as place:
        # All ranks share the directory of the first.
        out = Path(os.environ.get("RANK_SPEED_PLACE", place))
        trainer = Trainer(read_config(find_config(config), values), Dataset.open(data), out)
        for _ in range(5):
            trainer.iterate()
        distributed.wait_for_all()
        started = time.monotonic()
        for _ in range(iterations):
            trainer.iterate()
        distributed.wait_for_all()
        seconds = time.monotonic() - started
        if trainer.rank == 0:
            print(json.dumps({"images_per_second": iterations * batch / seconds}))
        distributed.stop_ranks()


def run(ranks: int, data: Path, config: str, batch: int, chains: int, iterations: int) -> float:
    """Images per second of this many ranks."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        command += ["-m", "train.ranks", "--data", str(data), "--config", config]
        command += ["--iterations", str(iterations), "--worker", str(batch), str(chains)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "RANK_SPEED_PLACE": place}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"The ranks ended in an error: {done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])["images_per_second"]


def compare(data: Path, config: str, iterations: int, repeats: int) -> dict[str, float]:
    """Images per second of one rank and of two; the fastest of the repeats counts, which take turns."""
    chosen = read_config(find_config(config))
    batch, chains = chosen.batch_size, chosen.chain_count or chosen.batch_size
    rows = {
        f"one rank, batch {batch}": (1, batch, chains),
        f"two ranks, batch {batch} each": (2, 2 * batch, 2 * chains),
        f"two ranks, batch {batch // 2} each": (2, batch, chains),
    }
    best = dict.fromkeys(rows, 0.0)
    for _ in range(repeats):
        for name, (ranks, *sizes) in rows.items():
            best[name] = max(best[name], run(ranks, data, config, *sizes, iterations))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a prepared data set")
    parser.add_argument("--config", default="paper-avatars-32")
    parser.add_argument("--iterations", type=int, default=30, help="timed ones, after a warm-up of five (30)")
    parser.add_argument("--repeats", type=int, default=3, help="of which the fastest counts (3)")
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        measure(args.data, args.config, *args.worker, args.iterations)
        return
    best = compare(args.data, args.config, args.iterations, args.repeats)
    alone = next(iter(best.values()))
    print("| ranks, one thread each | images per second | times one rank |\n|---|---|---|")
    for name, speed in best.items():
        print(f"| {name} | {speed:.1f} | {speed / alone:.2f} |")


if __name__ == "__main__":
    main()
