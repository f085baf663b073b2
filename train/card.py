"""Write a model's card from its own files: python -m train card MODEL."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from huggingface_hub import EvalResult, ModelCardData

from jem_core.bundle import read_config
from jem_core.data.facts import DataFacts
from train.card_synthesis import JUDGED, factored, synthesis
from train.markdown import between, percent, table

CLASSIFICATION, GENERATION = "image-classification", "unconditional-image-generation"
METADATA_METRICS = {"accuracy": "accuracy", "f1": "f1", "auroc": "roc_auc", "auprc": "average_precision", "ece": "ece"}
HOW = {
    "denoising": "a joint energy-based model of images and their attributes over noise levels, trained by denoising",
    "gibbs-jem": "a joint energy-based model of images and their attributes, trained by Langevin-within-Gibbs chains",
    "jem": "an energy-based model of images whose labels are trained by factorization (plain JEM): the comparison",
    "supervised": "the same network trained as a classifier alone: the baseline",
}
PAGES = {
    "celeba": "http://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
    **dict.fromkeys(("shoes", "utzappos"), "https://vision.cs.utexas.edu/projects/finegrained/utzap50k/"),
}
USE = (
    "Made to study and to teach: how an energy-based model of many attributes samples, what it makes of combinations "
    "that it never saw, and how far its percentages can be trusted. Not made to decide anything about people."
)
LIMITS = (
    "Small images from a small network. Chains begin at the conditional start unless a table says otherwise. The judge "
    "is a classifier and can err. Percentages hold for images like the held-out ones; the gate says when an image "
    "is not."
)
LIMITS_CELEBA = (
    "CelebA's labels are opinions of its annotators about celebrities, with their biases: Attractive or Young is a "
    "label here, not a fact about anybody."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="a model directory that `python -m train evaluate` has measured")


def run(args: argparse.Namespace) -> int:
    write_card(args.model)
    print(args.model / "README.md")
    return 0


def write_card(directory: Path) -> None:
    """README.md from config.json and evaluation.json: no figure comes from anywhere else."""
    config = read_config(directory)
    path = directory / "evaluation.json"
    if not path.is_file():
        raise ValueError(f"{directory} has no evaluation.json; run `python -m train evaluate` first.")
    evaluation = json.loads(path.read_text())
    (directory / "README.md").write_text(card(config, evaluation))


def card(config: dict, evaluation: dict) -> str:
    """The whole card."""
    parts = [metadata(config, evaluation), *_head(config, evaluation)]
    if "synthesis" in evaluation:
        parts += synthesis(evaluation)
    if "factored_jem" in evaluation:
        parts += factored(evaluation)
    parts += [*_prediction(config, evaluation), *_making(config, evaluation), *_use(config), *_terms(config)]
    return "\n\n".join(parts) + "\n"


def metadata(config: dict, evaluation: dict) -> str:
    """The Hub's front matter: licence, tags, data, metrics, results (its model-index) and a picture."""
    source = config["data"].get("source", "own data")
    licence: dict = {"license": "mit"}
    if restricted(config):
        licence = {"license": "other", "license_name": "non-commercial-research-only"}
        licence |= {"license_link": PAGES[source]} if source in PAGES else {}
    scores = results(source, evaluation)
    generates = any(score.task_type == GENERATION for score in scores)
    samples = evaluation.get("samples")
    widget = {"widget": [{"text": "-", "output": {"url": samples["file"]}}]} if samples else {}  # it asks for a text
    front = ModelCardData(
        **licence,
        library_name="gibbs-jem-studio",
        pipeline_tag=GENERATION if generates else CLASSIFICATION,
        tags=["energy-based-model", "gibbs-jem", "conditional-image-generation", "calibration", "multi-label"],
        datasets=[source],
        metrics=sorted(set(METADATA_METRICS.values()) | {"brier_score"}),
        model_name=config["name"],
        eval_results=scores,
        **widget,
    )
    return f"---\n{front.to_yaml()}\n---"


def results(source: str, evaluation: dict) -> list[EvalResult]:
    """Prediction, and where it was judged synthesis, as the Hub lists results."""

    def score(task: str, words: str, kind: str, name: str, value: float) -> EvalResult:
        return EvalResult(task, source, f"{source}, test images", kind, value, task_name=words, metric_name=name)

    micro = evaluation["prediction"]["micro"]
    found = [
        score(CLASSIFICATION, "attributes", kind, f"{name}, micro", micro[name]["value"])
        for name, kind in METADATA_METRICS.items()
        if micro[name]["value"] is not None
    ]
    words = "conditional synthesis, judged by a classifier"
    judged = [row for row in evaluation["measures"] if row["key"] in JUDGED and row["value"] is not None]
    return found + [score(GENERATION, words, "accuracy", row["measure"], row["value"]) for row in judged]


def restricted(config: dict) -> bool:
    """Whether the data forbid more than research."""
    return config.get("licence", "MIT") != "MIT"


def _head(config: dict, evaluation: dict) -> list[str]:
    size, names = config["model"]["image_size"], config["model"]["names"]
    what = HOW.get(config.get("objective", ""), "an energy-based model")
    source = config["data"].get("source", "own data")
    intro = (
        f"`{config['name']}` is {what} (Gibbs-JEM Studio). Data: {source}, {size} px, {len(names)} attributes: "
        f"{', '.join(name.replace('_', ' ') for name in names)}."
    )
    parts = [f"# {config['name']}", intro]
    if restricted(config):
        terms = config["licence"]
        parts.append(f"**{terms[0].upper()}{terms[1:]}.**")
    if "samples" in evaluation:
        samples = evaluation["samples"]
        parts.append(f"![Fresh chains, one row per condition]({samples['file']})")
        parts.append(
            f"Uncurated: {samples['chains']} fresh chains per condition, seed {samples['seed']}, from the conditional "
            "start: a Gaussian fitted to images and labels, given the asked labels, not white noise. A star marks a "
            "combination that no training image has."
        )
    return parts


def _prediction(config: dict, evaluation: dict) -> list[str]:
    found = evaluation["prediction"]
    names = {"accuracy": "accuracy", "f1": "F1", "auprc": "AUPRC", "auroc": "AUROC", "ece": "ECE (closed bins)"}
    names |= {"ece_paper": "ECE (the paper's half-open bins)", "ece_adaptive": "ECE (equal mass)"}
    rows = [[label, between(found["micro"][key]), between(found["macro"][key])] for key, label in names.items()]
    mirrored = ", half of them mirrored" if found.get("mirrored") else ""
    best = config.get("training", {}).get("checkpoint") == "best"
    chosen = "The checkpoint was chosen on val. " if best else ""
    text = (
        f"On {found['images']:,} test images, of combinations that training has seen. {chosen}Averages of "
        f"{found['draws']} dequantization draws{mirrored}. "
        f"{100 * evaluation['interval']:.0f} % bootstrap intervals over images."
    )
    parts = ["## Prediction", text, table(["", "micro", "macro"], rows)]
    if "gate" in evaluation:
        gate = evaluation["gate"]
        listed = ", ".join(f"{name} {percent(entry['value'])}" for name, entry in gate["auroc"].items())
        parts.append(f"The gate, which greys pictures unlike the data ({gate_by(evaluation)}), AUROC: {listed}.")
    return parts


def gate_by(evaluation: dict) -> str:
    """What the gate looks at: it differs between models with noise levels, which alone are steered, and others."""
    if "steering" in evaluation:
        return "by what is left of known noise at five levels, and how undecided the labels are"
    return "by log p(x) and its gradient norm"


def _making(config: dict, evaluation: dict) -> list[str]:
    training = config.get("training", {})
    commands = [training.get("data_command"), training.get("command"), training.get("export_command")]
    commands = [shown(command) for command in [*commands, evaluation["command"], evaluation.get("added_by")] if command]
    facts = [f"{training[key]:,} {key}" for key in ("iterations", "seconds") if key in training]
    facts += [training["hardware"]] if "hardware" in training else []
    parts = ["## How it was made", "```\n" + "\n".join(commands) + "\n```"]
    if facts:
        evaluated = f"{evaluation['seconds']} seconds, {evaluation['hardware']}"
        parts.append(f"Training: {', '.join(facts)}. Evaluation: {evaluated}.")
    return parts


def shown(command: str) -> str:
    """A command without the directories of the machine that it ran on."""
    return " ".join(Path(word).name if word.startswith("/") else word for word in command.split(" "))


def _use(config: dict) -> list[str]:
    code = (
        "import jem_core\n\n"
        f'bundle = jem_core.load("{config["name"]}")\n'
        f'condition = jem_core.Condition.from_lists(bundle.names, required=["{config["model"]["names"][0]}"])\n'
        "samples = jem_core.sample(bundle, condition, n=16, seed=0)"
    )
    return ["## Use", f"```python\n{code}\n```"]


def _terms(config: dict) -> list[str]:
    data = config["data"]
    parts = ["## Intended use", USE, "## Limits", LIMITS]
    if DataFacts.read(config, config["model"]["names"]).faces:
        parts[-1] += " " + LIMITS_CELEBA
    terms = f"{config.get('licence', 'MIT')}. Data: {data.get('credit', '')} {data.get('licence', '')}".strip()
    return [*parts, "## Terms", terms.rstrip(".") + "."]
