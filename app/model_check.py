"""Everything that a screen reads of a model's config and reports, read once before the model is offered.

A model from the Hub is somebody else's file. One whose config is odd must be a sentence in the log, not an error in the
first answer to every visitor. So must one whose reports are: the Compare screen reads them of models that nobody has
loaded.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch

from app.attributes import grouped
from app.presets import presets_for
from jem_core.bundle import REPORTS, read_report, sampling_of
from jem_core.networks import build_network
from jem_core.report_check import check_reports

if TYPE_CHECKING:
    from app.catalog import Entry

LONGEST = 200  # letters of a name or a title
MOST_ATTRIBUTES = 500


def check_model(entry: Entry) -> None:
    """Refuse a model that a screen would stumble over; ValueError says over what."""
    config = entry.config
    texts = {"name": entry.name, "title": config.get("title", ""), "objective": config.get("objective", "")}
    for key, value in texts.items():
        if not isinstance(value, str) or len(value) > LONGEST:
            raise ValueError(f"The config's {key} is not a text of at most {LONGEST} letters.")
    training = config.get("training", {})
    iterations = training.get("iterations") if isinstance(training, dict) else training
    if not (iterations is None or type(iterations) is int):
        raise ValueError("The config's training does not say its iterations as a whole number.")
    try:
        with torch.device("meta"):  # no memory is used
            build_network(config["model"])
        names = entry.attributes
        read = (entry.image_size, entry.levels, entry.generates, entry.title)
        read += (sampling_of(config, entry.levels), grouped(names), presets_for(names))
        json.dumps(read, allow_nan=False)
        _ = entry.data
    except ValueError:
        raise
    except Exception as error:  # odd configs fail in more ways than can be listed; all mean the same
        raise ValueError(
            f"The config does not describe a model ({type(error).__name__}: {str(error)[:100]})."
        ) from error
    good = all(isinstance(name, str) and 0 < len(name) <= LONGEST for name in names)
    if not good or not 0 < len(names) <= MOST_ATTRIBUTES or len(set(names)) < len(names):
        raise ValueError(f"The config's names are not up to {MOST_ATTRIBUTES} different attributes.")
    if entry.directory:
        found = {kind: report for kind in REPORTS if (report := read_report(entry.directory, kind)) is not None}
        check_reports(found, names, entry.levels)
