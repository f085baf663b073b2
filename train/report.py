"""One self-contained page of a model's evaluation: tables, plots, samples; no network needed."""

from __future__ import annotations

import base64
import json
from html import escape
from pathlib import Path

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from jem_core import plots
from jem_core.bundle import REPORTS, read_config, read_report
from jem_core.data.facts import DataFacts
from train.card import HOW, gate_by
from train.markdown import between, percent
from train.measures import PREDICTION, is_plain

SHORT = ("accuracy", "F1", "AUPRC", "AUROC", "ECE", "ECE (paper)", "ECE (equal mass)", "Brier")
STYLE = """
:root { color-scheme: light; --ink: #1f2937; --soft: #6b7280; --line: #e5e7eb; --accent: #2563eb; }
body { font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; color: var(--ink); margin: 0 auto;
  max-width: 1080px; padding: 24px; background: #fff; }
h1 { font-size: 1.8rem; margin: .2em 0; } h2 { margin-top: 2em; border-bottom: 1px solid var(--line); }
p.soft { color: var(--soft); } img.samples { max-width: 100%; image-rendering: auto; border: 1px solid var(--line); }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { text-align: right; padding: .3em .8em; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead th { color: var(--soft); font-weight: 600; }
div.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 12px; }
#reliability { grid-column: 1 / -1; }
select { font: inherit; padding: .3em .6em; }
"""
TABLES = {
    "singles": "Single attributes",
    "seen_pairs": "Seen pairs",
    "held_out_pairs": "Held-out pairs",
    "held_out_pairs_best_of_10": "Held-out pairs, best of 10",
    "triples": "Triples",
}
SCRIPT = """
const figures = JSON.parse(document.getElementById('figures').textContent);
const settings = {responsive: true, displaylogo: false};
function show(attribute) {
  for (const kind of ['reliability', 'roc', 'pr']) {
    const figure = (figures[attribute] || {})[kind] || {data: [], layout: {title: {text: 'not defined'}}};
    Plotly.react(kind, figure.data, figure.layout, settings);
  }
}
const choice = document.getElementById('attribute');
choice.addEventListener('change', () => show(choice.value));
show(choice.value);
for (const name of ['starts', 'pairs'])
  if (document.getElementById(name)) Plotly.react(name, figures[name].data, figures[name].layout, settings);
"""


def write_report(directory: Path, path: Path) -> None:
    """The page, from the model directory's files alone."""
    files = {name: read_report(directory, name) for name in REPORTS}
    for name in ("evaluation", "calibration", "curves"):
        if files[name] is None:
            raise ValueError(f"{directory} has no {name}.json; run `python -m train evaluate` first.")
    page = report(read_config(directory), files, directory / "samples.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")


def report(config: dict, files: dict, samples: Path) -> str:
    evaluation = files["evaluation"]
    body = [*_head(config, evaluation), *_measures(evaluation), *_pictures(evaluation, samples)]
    facts = DataFacts.read(config, config["model"]["names"])
    figures = _figures(evaluation, files, facts)
    options = "".join(
        f'<option value="{escape(name)}">{escape(plots.name_of(name))}</option>'
        for name in (plots.ALL, *files["calibration"]["attributes"])
    )
    body.append(
        f'<h2>Calibration, ROC, precision and recall</h2><p><label>Attribute <select id="attribute">{options}</select>'
        '</label></p><div class="plots"><div id="reliability"></div><div id="roc"></div><div id="pr"></div></div>'
    )
    body += [*_attributes(evaluation), *_synthesis(evaluation, figures), *_factored(evaluation)]
    # "</" would end the script element that carries the figures.
    data = json.dumps(figures).replace("</", "<\\/")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(config["name"])}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{STYLE}</style><script>{get_plotlyjs()}</script></head><body>{''.join(body)}"
        f'<script type="application/json" id="figures">{data}</script><script>{SCRIPT}</script></body></html>\n'
    )


def _figures(evaluation: dict, files: dict, facts: DataFacts) -> dict[str, dict]:
    """For each attribute its three plots; and the plots of synthesis."""
    calibration, curves, found = files["calibration"], files["curves"], evaluation["prediction"]
    name = evaluation["model"]
    figures: dict[str, dict] = {}
    for attribute in (plots.ALL, *calibration["attributes"]):
        key = "micro" if attribute == plots.ALL else attribute
        values = found["micro"] if attribute == plots.ALL else found["attributes"][attribute]
        figures[attribute] = {"reliability": _plain(plots.reliability(calibration, attribute, names=(name, "")))}
        if key in curves["roc"]:
            figures[attribute] |= {
                "roc": _plain(plots.roc({name: curves}, key, values={name: values["auroc"]["value"]})),
                "pr": _plain(plots.precision_recall({name: curves}, key, values={name: values["auprc"]["value"]})),
            }
    if "synthesis" in evaluation:
        rows = evaluation["synthesis"]["samplers_and_starts"]
        figures["starts"] = _plain(plots.samplers_and_starts(rows))
    if files.get("pairs"):
        # What cannot be true together stays blank.
        possible = [row for row in files["pairs"]["pairs"] if row["pair"][1] not in facts.rivals(row["pair"][0])]
        figures["pairs"] = _plain(plots.pairs_map(files["pairs"] | {"pairs": possible}))
    return figures


def _plain(figure: go.Figure) -> dict:
    found = json.loads(figure.to_json())
    # Ours says everything, and a template in each figure would weigh more than its data.
    found["layout"].pop("template", None)
    return found


def table(heads: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def _head(config: dict, evaluation: dict) -> list[str]:
    size, count = config["model"]["image_size"], len(config["model"]["names"])
    what = HOW.get(config.get("objective", ""), "an energy-based model")
    facts = f"{config['data'].get('source', 'own data')}, {size} px, {count} attributes. {config.get('licence', '')}"
    made = f"{evaluation['command']}, seed {evaluation['seed']}, {evaluation['seconds']} s, {evaluation['hardware']}"
    return [
        f"<h1>{escape(config['name'])}</h1><p>{escape(what[0].upper() + what[1:])}. {escape(facts)}</p>",
        f'<p class="soft">{escape(made)}</p>',
    ]


def _measures(evaluation: dict) -> list[str]:
    rows = []
    for row in evaluation["measures"]:
        plain = is_plain(row["key"])
        value = "-" if row["value"] is None else f"{row['value']:.4g}" if plain else between(row)
        counted = next((f"{row[name]:,} {name}" for name in ("chains", "images") if name in row), "")
        rows.append([row["measure"], value, counted, f"{row['seconds']}" if "seconds" in row else ""])
    return ["<h2>Measures</h2>", table(["measure", "value (95 % interval)", "counted on", "seconds"], rows)]


def _pictures(evaluation: dict, samples: Path) -> list[str]:
    if "samples" not in evaluation or not samples.is_file():
        return []
    data = base64.b64encode(samples.read_bytes()).decode()
    facts = evaluation["samples"]
    text = f"Fresh chains, {facts['chains']} per condition, seed {facts['seed']}, nothing picked. A star marks a"
    alt = "Rows of samples: " + "; ".join(row["condition"] for row in facts["rows"])
    return [
        f'<h2>Samples</h2><img class="samples" alt="{escape(alt)}" src="data:image/png;base64,{data}">',
        f'<p class="soft">{text} combination that no training image has.</p>',
    ]


def _attributes(evaluation: dict) -> list[str]:
    found = evaluation["prediction"]["attributes"]
    rows = [
        [plots.name_of(name), percent(entry["positive_rate"]), *(percent(entry[key]["value"]) for key in PREDICTION)]
        for name, entry in found.items()
    ]
    return ["<h2>Attributes</h2>", table(["attribute", "positive", *SHORT], rows), *_gate(evaluation)]


def _gate(evaluation: dict) -> list[str]:
    found = evaluation.get("gate")
    if not found:
        return []
    rows = [
        [name, percent(entry["value"]), percent(entry["found_unlike"]), f"{entry['images']}"]
        for name, entry in found["auroc"].items()
    ]
    heads = ["what is shown instead", "AUROC", 'found "unlike"', "images"]
    return [f"<h2>The gate, {gate_by(evaluation)}</h2>", table(heads, rows)]


def _synthesis(evaluation: dict, figures: dict) -> list[str]:
    found = evaluation.get("synthesis")
    if not found:
        return []
    parts = ["<h2>Synthesis</h2>", '<div id="starts"></div>']
    if "pairs" in figures:
        parts.append('<div id="pairs"></div>')
    for key, title in TABLES.items():
        if key in found:
            parts += [f"<h3>{title}</h3>", table(_HEADS, [_condition(row) for row in found[key]["conditions"]])]
    return parts


_HEADS = [
    "condition",
    "judged right",
    "own classifier",
    "start noise",
    "real images",
    "spread",
    "in training",
    "chains",
]


def _condition(row: dict) -> list[str]:
    rates = [
        percent(row.get(key, {}).get("value")) for key in ("self_consistent", "judged_right_start", "judged_right_real")
    ]
    ratio = f"{row['spread']['value']:.2f}" if "spread" in row else "-"
    seen = f"{row['training_images']:,}" if "training_images" in row else "-"
    return [row["condition"], between(row["judged_right"]), *rates, ratio, seen, f"{row['chains']:,}"]


def _factored(evaluation: dict) -> list[str]:
    found = evaluation.get("factored_jem")
    if not found:
        return []
    rows = []
    for key in ("seen_pairs", "held_out_pairs"):
        for row in found.get(key, {}).get("conditions", []):
            rates = [percent(row[way]["judged_right"]["value"]) for way in ("ours", "direct")]
            route = (
                f"{row['route']['judged_right']['count']} right of {row['route']['kept']} kept of {row['route']['of']}"
            )
            speeds = [f"{row[way]['right_a_second']:.3g}" for way in ("ours", "direct", "route")]
            rows.append([row["condition"], *rates, route, *speeds])
    heads = ["condition", "this model", "factored JEM, direct", "factored JEM: sample, classify, keep"]
    return ["<h2>What plain JEM cannot do</h2>", table([*heads, "right per second", "direct", "kept"], rows)]
