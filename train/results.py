"""Bring the README's table of results up to date from the bundled models' evaluation files."""

import argparse
import json
import re
from pathlib import Path

from jem_core.bundle import read_config
from jem_core.objectives.denoising import Denoising
from jem_core.objectives.joint import GibbsJem
from jem_core.places import ASSETS
from train.markdown import table
from train.measures import is_plain

ROOT = Path(__file__).resolve().parents[1]
MODELS = ASSETS / "models"
RIVAL = ROOT / "train" / "ablations" / "diffusion.json"  # what train.ablations.diffusion wrote of avatars
BEGIN, END = "<!-- results: python -m train results -->", "<!-- end of results -->"
SHOWN = (Denoising.name, GibbsJem.name)  # ours and the paper's; their rivals stand on the Compare screen
ROWS = {
    "singles": "judged right, single attributes",
    "seen_pairs": "judged right, seen pairs",
    "held_out_pairs": "judged right, held-out pairs",
    "held_out_triples": "judged right, triples with a held-out pair",
    "noise_held_out_pairs": "held-out pairs from pure noise",
    "steering_mean": "steering, judged right, mean over eight toggles",
    "steering_after_last": "steering, judged right after the eighth",
    "steering_clipped": "clipped pixels then, times the data's share",
    "wandering_0": "wandering, judged right at arrival",
    "wandering_1000": "wandering, judged right after 1,000 steps",
    "frechet_distance": "Frechet distance, judge's features",
    "micro_accuracy": "accuracy",
    "micro_auroc": "AUROC, micro",
    "micro_auprc": "AUPRC, micro",
    "micro_ece": "ECE, micro, closed bins",
    "gate_worst": "gate, worst AUROC",
    "iterations": "training iterations",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")


def run(args: argparse.Namespace) -> int:
    text = args.readme.read_text(encoding="utf-8")
    args.readme.write_text(replaced(text, results_table(MODELS)), encoding="utf-8")
    print(f"{args.readme} now holds the figures of the bundled models.")
    return 0


def replaced(text: str, results: str) -> str:
    """The text with what stands between the two marks exchanged."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"The README must hold {BEGIN!r} and {END!r} once each.")
    return re.sub(
        f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}\n{results}\n{END}", text, flags=re.DOTALL
    )


def evaluations(directory: Path) -> dict[str, dict]:
    """By model name: the measures of its evaluation, by key, with what trained it and for how long."""
    found = {}
    for path in sorted(directory.glob("*/evaluation.json")):
        evaluation, config = json.loads(path.read_text()), read_config(path.parent)
        rows = {row["key"]: row["value"] for row in evaluation["measures"]}
        rows["gate_worst"] = evaluation.get("gate", {}).get("worst_auroc")
        rows |= {"objective": config["objective"], "iterations": config["training"]["iterations"]}
        found[path.parent.name] = rows
    return found


def rival(path: Path) -> dict:
    """The diffusion model's figures, by the same keys."""
    figures = json.loads(path.read_text())
    return figures | {"frechet_distance": figures["fidelity"]["frechet_distance"]}


def results_table(directory: Path) -> str:
    """One column per model of SHOWN, and the rival's; one row per measure; what was not measured stays empty."""
    found = {name: rows for name, rows in evaluations(directory).items() if rows["objective"] in SHOWN}
    found |= {"diffusion": rival(RIVAL)}
    heads = ["measure", *(f"`{name}`" for name in found)]
    lines = [[title, *(_shown(rows.get(key), key) for rows in found.values())] for key, title in ROWS.items()]
    return table(heads, lines)


def _shown(value: float | None, key: str) -> str:
    if value is None:
        return ""
    if key == "iterations":
        return f"{value:,}"
    return f"{value:.3g}" if is_plain(key) else f"{100 * value:.1f} %"
