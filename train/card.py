"""Write a model's card from its own files: python -m train card MODEL."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import yaml

from jem_core.bundle import read_config

METADATA_METRICS = {"accuracy": "accuracy", "f1": "f1", "auroc": "roc_auc", "auprc": "average_precision", "ece": "ece"}
JUDGED = {
    "singles": "single attributes",
    "seen_pairs": "seen pairs",
    "seen_pairs_best_of_10": "seen pairs, best of 10",
    "held_out_pairs": "held-out pairs",
    "held_out_pairs_best_of_10": "held-out pairs, best of 10",
    "triples": "triples",
}
HOW = {
    "gibbs-jem": "a joint energy-based model of images and their attributes, trained by Langevin-within-Gibbs chains",
    "jem": "an energy-based model of images whose labels are trained by factorization (plain JEM): the comparison",
    "supervised": "the same network trained as a classifier alone: the baseline",
}
CELEBA_PAGE = "http://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
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
        parts += _synthesis(evaluation)
    if "factored_jem" in evaluation:
        parts += _factored(evaluation)
    parts += [*_prediction(evaluation), *_making(config, evaluation), *_use(config), *_terms(config)]
    return "\n\n".join(parts) + "\n"


def metadata(config: dict, evaluation: dict) -> str:
    """The Hub's front matter: licence, tags, data, metrics and results."""
    source = config["data"].get("source", "own data")
    licence: dict = {"license": "mit"}
    if source == "celeba":
        licence = {"license": "other", "license_name": "non-commercial-research-only", "license_link": CELEBA_PAGE}
    micro = evaluation["prediction"]["micro"]
    data = {"name": f"{source}, reporting half of the held-out images", "type": source}
    found = [
        {"type": kind, "name": f"{name}, micro", "value": micro[name]["value"]}
        for name, kind in METADATA_METRICS.items()
        if micro[name]["value"] is not None
    ]
    results = [{"task": {"type": "image-classification", "name": "attributes"}, "dataset": data, "metrics": found}]
    judged = [row for row in evaluation["measures"] if row["key"] in JUDGED and row["value"] is not None]
    if judged:
        task = {"type": "unconditional-image-generation", "name": "conditional synthesis, judged by a classifier"}
        scores = [{"type": "accuracy", "name": row["measure"], "value": row["value"]} for row in judged]
        results.append({"task": task, "dataset": dict(data), "metrics": scores})
    tags = ["energy-based-model", "gibbs-jem", "conditional-image-generation", "calibration", "multi-label"]
    front = licence | {
        "library_name": "gibbs-jem-studio",
        "pipeline_tag": "image-classification" if not judged else "unconditional-image-generation",
        "tags": tags,
        "datasets": [source],
        "metrics": sorted(set(METADATA_METRICS.values()) | {"brier_score"}),
        "model-index": [{"name": config["name"], "results": results}],
    }
    return "---\n" + yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=1000) + "---"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def between(entry: dict) -> str:
    """A value with its interval."""
    if entry.get("low") is None:
        return percent(entry["value"])
    return f"{percent(entry['value'])} ({100 * entry['low']:.1f} to {100 * entry['high']:.1f})"


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _head(config: dict, evaluation: dict) -> list[str]:
    size, names = config["model"]["image_size"], config["model"]["names"]
    what = HOW.get(config.get("objective", ""), "an energy-based model")
    source = config["data"].get("source", "own data")
    intro = (
        f"`{config['name']}` is {what} (Gibbs-JEM Studio). Data: {source}, {size} px, {len(names)} attributes: "
        f"{', '.join(name.replace('_', ' ') for name in names)}."
    )
    parts = [f"# {config['name']}", intro]
    if source == "celeba":
        terms = config["licence"]
        parts.append(f"**{terms[0].upper()}{terms[1:]}.**")
    if "samples" in evaluation:
        samples = evaluation["samples"]
        parts.append(f"![Fresh chains, one row a condition]({samples['file']})")
        parts.append(
            f"Uncurated: {samples['chains']} fresh chains a condition, seed {samples['seed']}, from the conditional "
            "start: a Gaussian fitted to images and labels, given the asked labels, not white noise. A star marks a "
            "combination that no training image has."
        )
    return parts


def _synthesis(evaluation: dict) -> list[str]:
    found, judge = evaluation["synthesis"], evaluation["judge"]
    rows = []
    for key, name in JUDGED.items():
        if key not in found:
            continue
        total = found[key]["summary"]
        rows.append([name, between(total["judged_right"]), percent(total["self_consistent"]["value"])])
        rows[-1] += [percent(total.get(side, {}).get("value")) for side in ("judged_right_start", "judged_right_real")]
        plain = evaluation.get("synthesis_informed", {}).get(key, {}).get("summary", {})
        rows[-1].append(between(plain["judged_right"]) if plain else "-")
        rows[-1] += [f"{total['conditions']}", f"{total['chains']:,}", f"{total['seconds']}"]
    heads = ["conditions", "judged right", "own classifier agrees", "their starts", "real images"]
    heads += ["judged right, informed start", "how many", "samples", "seconds"]
    text = (
        "A judge of another architecture, trained supervised on all data, held-out combinations included, looks at "
        f"every sample; it is right on {percent(judge['mean_accuracy'])} of real labels that it never saw. All asked "
        f"attributes must be right. Sampler: {found['sampler']}, {found['steps']} steps from the conditional start: "
        "noise of a Gaussian fitted to images and labels, given the asked labels. How often the judge finds that noise "
        "right stands beside it, and what comes of the informed start, which does not know what is asked. "
        f"{100 * evaluation['interval']:.0f} % intervals."
    )
    parts = ["## Conditional synthesis", text, table([*heads], rows), _attributes(found), _weakest(found)]
    if "pairs_shuffled_conditions" in found:
        shuffled = found["pairs_shuffled_conditions"]
        parts.append(f"With the conditions of the pairs dealt out at random the judge agrees with {between(shuffled)}.")
    return [*parts, *_fidelity(evaluation), *_starts(found)]


def _attributes(found: dict) -> str:
    names = found["attributes"]["names"]
    if found["attributes"]["chosen"] == "all":
        return "Single attributes: all."
    return f"Single attributes: {', '.join(names).replace('_', ' ')} ({found['attributes']['chosen']})."


def _weakest(found: dict) -> str:
    rows = [
        row for key in ("singles", "seen_pairs", "held_out_pairs") for row in found.get(key, {}).get("conditions", [])
    ]
    rows = sorted(rows, key=lambda row: row["judged_right"]["value"])[:4]
    listed = ", ".join(f"{row['condition']} ({percent(row['judged_right']['value'])})" for row in rows)
    return f"Weakest: {listed}."


def _fidelity(evaluation: dict) -> list[str]:
    found = evaluation["fidelity"]
    names = {"samples": "samples", "real_images": "as many real images", "start_noise": "the start noise"}
    rows = [
        [
            label,
            f"{found[key]['frechet_distance']:.1f}",
            percent(found[key]["precision"]),
            percent(found[key]["recall"]),
        ]
        for key, label in names.items()
    ]
    near = found["nearest_training_image"]
    text = (
        f"Nearest training image (root mean square over pixels): {near['samples_median']:.3f} for samples, "
        f"{near['real_median']:.3f} for real images that training never saw, in the median."
    )
    if "spread" in found:
        ratio = found["spread"]
        text = (
            "Spread between fresh chains of one condition, relative to data of that condition: "
            f"{ratio['median']:.2f} in the median over {ratio['conditions']} conditions, {ratio['lowest']:.2f} at the "
            f"lowest{_grain(found)}. " + text
        )
    return [table(["features of the judge", "Frechet distance", "precision", "recall"], rows), text]


def _grain(found: dict) -> str:
    if "spread_without_grain" not in found:
        return ""
    ratio = found["spread_without_grain"]["median"]
    return f"; between means of blocks of pixels, where grain averages out, {ratio:.2f}"


def _starts(found: dict) -> list[str]:
    rows = []
    for row in found.get("samplers_and_starts", []):
        cells = [between(row[key]["judged_right"]) if key in row else "-" for key in ("seen_pairs", "held_out_pairs")]
        counts = [f"{row[key]['chains']:,}" if key in row else "-" for key in ("seen_pairs", "held_out_pairs")]
        rows.append([row["sampler"], row["start"], *(f"{cell} of {n}" for cell, n in zip(cells, counts, strict=True))])
    return [table(["sampler", "start", "seen pairs judged right", "held-out pairs judged right"], rows)] if rows else []


def _factored(evaluation: dict) -> list[str]:
    found = evaluation["factored_jem"]
    ways = {"ours": "this model", "direct": "factored JEM, direct", "route": "factored JEM: sample, classify, keep"}
    rows = []
    for key, name in (("seen_pairs", "seen pairs"), ("held_out_pairs", "held-out pairs")):
        for way, label in ways.items():
            if key in found:
                total = found[key]["summary"][way]
                rows.append(
                    [name, label, percent(total["judged_right"]), f"{total['of']:,}", f"{total['right_a_second']}"]
                )
    never = sum(
        found[key]["summary"]["route"]["conditions_never_met"]
        for key in ("seen_pairs", "held_out_pairs")
        if key in found
    )
    text = (
        "Plain JEM learns p(x) and p(y|x) apart. Its only sound route to a condition is to sample without one, "
        "classify and keep what matches; for direct sampling it was never trained. A sample counts when the judge "
        "finds it right. Both models start at informed noise, which does not know the condition."
    )
    closing = f"Of the pairs, {_count(never, found)} were never met among {found['free_chains']} free samples."
    return [
        "## What plain JEM cannot do",
        text,
        table(["pairs", "way", "judged right", "samples", "right a second"], rows),
        closing,
    ]


def _count(never: int, found: dict) -> str:
    pairs = [found[key]["summary"]["conditions"] for key in ("seen_pairs", "held_out_pairs") if key in found]
    return "none" if not never else "all" if never == sum(pairs) else "some"


def _prediction(evaluation: dict) -> list[str]:
    found = evaluation["prediction"]
    names = {"accuracy": "accuracy", "f1": "F1", "auprc": "AUPRC", "auroc": "AUROC", "ece": "ECE (closed bins)"}
    names |= {"ece_paper": "ECE (the paper's half-open bins)", "ece_adaptive": "ECE (equal mass)"}
    rows = [[label, between(found["micro"][key]), between(found["macro"][key])] for key, label in names.items()]
    text = (
        f"On {found['images']:,} images of {found['rows']}; the other half chose the checkpoint. Averages of "
        f"{found['draws']} dequantization draws. {100 * evaluation['interval']:.0f} % bootstrap intervals over images."
    )
    parts = ["## Prediction", text, table(["", "micro", "macro"], rows)]
    if "gate" in evaluation:
        gate = evaluation["gate"]
        listed = ", ".join(f"{name} {percent(entry['value'])}" for name, entry in gate["auroc"].items())
        parts.append(f"The out-of-distribution gate (log p(x) and its gradient norm), AUROC: {listed}.")
    return parts


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
        f'condition = jem_core.Condition.from_lists(bundle.names, wanted=["{config["model"]["names"][0]}"])\n'
        "samples = jem_core.sample(bundle, condition, n=16, seed=0)"
    )
    return ["## Use", f"```python\n{code}\n```"]


def _terms(config: dict) -> list[str]:
    data = config["data"]
    parts = ["## Intended use", USE, "## Limits", LIMITS]
    if data.get("source") == "celeba":
        parts[-1] += " " + LIMITS_CELEBA
    terms = f"{config.get('licence', 'MIT')}. Data: {data.get('credit', '')} {data.get('licence', '')}".strip()
    return [*parts, "## Terms", terms.rstrip(".") + "."]
