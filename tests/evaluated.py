"""A small model with the files that a real evaluation writes beside it, for the second and third screens."""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jem_core.bundle import Bundle, write_json
from jem_core.data.dataset import Dataset
from train.evaluate import predict_part
from train.measures import measures

PAIRS = {
    "format": 1,
    "names": ["Red", "Bright", "Striped", "Left", "Dotted", "Framed"],
    "chains": 2,
    "pairs": [
        {"pair": ["Red", "Bright"], "judged_right": 0.5, "self_consistent": 1.0, "training_images": 40},
        {"pair": ["Red", "Striped"], "judged_right": 1.0, "self_consistent": 1.0, "training_images": 0},
    ],
}


def evaluate_prediction(bundle: Bundle, dataset: Dataset, directory: Path, objective: str, pairs: bool = False) -> Path:
    """The model written anew with calibration, curves and the prediction part of its evaluation, all measured."""
    copy = Bundle(
        name=directory.name,
        config={**bundle.config, "objective": objective},
        model=bundle.model,
        gaussian=bundle.gaussian,
        buffer=bundle.buffer,
        support=bundle.support,
    )
    copy.write(directory)
    arguments = argparse.Namespace(model=directory, seed=0, other=None)
    evaluation = {"format": 1, "model": copy.name, "objective": objective}
    evaluation |= predict_part(copy, dataset, arguments)
    evaluation["measures"] = measures(evaluation)
    write_json(directory / "evaluation.json", evaluation)
    if pairs:
        write_json(directory / "pairs.json", PAIRS)
    return directory


@contextmanager
def evaluation(folder: Path, name: str = "tiny", **more: object) -> Iterator[None]:
    """The evaluation of a model in this folder with something more in it, for a while."""
    path = folder / name / "evaluation.json"
    before = path.read_text()
    try:
        path.write_text(json.dumps(json.loads(before) | more))
        yield
    finally:
        path.write_text(before)
