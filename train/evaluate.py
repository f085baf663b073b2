"""Measure a model: python -m train evaluate MODEL --data DIR [--judge DIR] [--quick] [--report FILE.html]."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from jem_core.bundle import Bundle, write_json
from jem_core.calibration import calibration_report
from jem_core.condition import Condition
from jem_core.data.dataset import Dataset
from jem_core.draws import DRAWS, mean_prediction
from jem_core.grids import condition_sheet, save_picture, shown_conditions
from jem_core.judge import Judge
from jem_core.metrics import curves, prediction_report
from jem_core.precision import fastest_precision
from jem_core.strangers import strangers
from jem_core.typicality import gate_report
from jem_core.verdicts import KEEP_OF, POOLED, Drawn, summary
from train.editing import PICTURES, editing
from train.fit import hardware
from train.measures import measures, print_measures
from train.plan import Plan, make_plan, quick_plan
from train.steering import WALKS, long_run, steering
from train.synthesis import (
    MAIN_START,
    Setting,
    draw_plan,
    factored,
    fidelity,
    heat_map,
    main_figures,
    plain_start,
    variants,
    variants_of,
)

FORMAT = 1
GATE_IMAGES, ORDINARY_IMAGES, STRANGERS = 800, 400, 150
QUICK_IMAGES = 400
ADDED_CHAINS = 20  # a pair, of both models
TRIPLES = ("triples", "held_out_triples")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="a model directory; the files are written into it")
    parser.add_argument("--data", required=True, type=Path, help="the data set that the model was trained on")
    parser.add_argument("--judge", type=Path, help="the judge of `python -m train judge` (DATA/judge)")
    parser.add_argument("--quick", action="store_true", help="a table in a minute; nothing is written")
    parser.add_argument("--samples", type=int, metavar="N", help="chains per condition (100, fewer for a slow model)")
    parser.add_argument("--jem", type=Path, metavar="MODEL", help="a factored model to compare synthesis with")
    parser.add_argument(
        "--other",
        type=Path,
        action="append",
        metavar="DIR",
        help="another data set of this size, for the gate; repeat it",
    )
    parser.add_argument(
        "--heatmap", type=int, nargs="?", const=4, default=0, metavar="N", help="also pairs.json, N chains per pair (4)"
    )
    parser.add_argument(
        "--edits", type=int, nargs="?", const=PICTURES, default=0, metavar="N", help="also edit N test pictures (20)"
    )
    parser.add_argument(
        "--free", type=int, metavar="N", help="chains without a condition, for the Frechet distance (500)"
    )
    parser.add_argument("--prediction", action="store_true", help="with --add: prediction and the gate once more")
    parser.add_argument("--triples", action="store_true", help="with --add: the triples of attributes once more")
    parser.add_argument("--steering", action="store_true", help="with --add: walks of toggles and wandering once more")
    parser.add_argument(
        "--add",
        action="store_true",
        help="keep the evaluation that is there, add what --prediction, --triples, --steering, --jem, --heatmap, "
        "--edits and --free ask for",
    )
    parser.add_argument("--report", type=Path, metavar="FILE.html", help="also one self-contained page")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="threads (as torch chooses)")


def run(args: argparse.Namespace) -> int:
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.samples is not None and args.samples < 1:
        raise ValueError(f"--samples is {args.samples}; expected at least 1.")
    began = time.perf_counter()
    bundle, dataset = Bundle.read(args.model), Dataset.open(args.data)
    check_fit(bundle, dataset)
    judge = None
    if bundle.objective.generates:
        judge = Judge.load(args.judge or args.data / "judge")
        if judge.names != bundle.names or judge.image_size != bundle.model.image_size:
            raise ValueError(f"The judge was trained on other attributes or another size than {bundle.name}.")
    if args.quick:
        return quick(bundle, dataset, judge, args, began)
    if args.add:
        return add(bundle, dataset, judge, args)
    evaluation = {
        "format": FORMAT,
        "model": bundle.name,
        "objective": bundle.config.get("objective"),
        "seed": args.seed,
        "command": shown_command(args),
        "hardware": f"{hardware()}, chains in {fastest_precision(bundle.device)}",
        "interval": 0.95,
        "keep_of": KEEP_OF,
    }
    evaluation |= predict_part(bundle, dataset, args)
    if judge is not None:
        evaluation |= synthesis_part(Setting(bundle, dataset, judge, args.seed), args)
    evaluation["measures"] = measures(evaluation)
    evaluation["seconds"] = round(time.perf_counter() - began, 1)
    bundle.reports["evaluation"] = evaluation
    write_json(args.model / "evaluation.json", evaluation)
    print_measures(evaluation)
    from train.card import write_card

    write_card(args.model)
    print(f"{evaluation['seconds']:.0f} s. Written: evaluation, calibration and curves in {args.model}, and its card.")
    if args.report:
        from train.report import write_report

        write_report(args.model, args.report)
        print(f"Report: {args.report}")
    return 0


def check_fit(bundle: Bundle, dataset: Dataset) -> None:
    """The model and the data speak of the same attributes at the same size."""
    if bundle.names != dataset.names:
        raise ValueError(f"The model knows {', '.join(bundle.names)}; the data have {', '.join(dataset.names)}.")
    if bundle.model.image_size != dataset.image_size:
        size = bundle.model.image_size
        raise ValueError(f"The model is for {size} px, the data have {dataset.image_size} px.")


def shown_command(args: argparse.Namespace) -> str:
    """The command without the directories of this machine."""
    words = sys.argv[1:] if sys.argv[1:2] == ["evaluate"] else ["evaluate", str(args.model), "--data", str(args.data)]
    return " ".join(["python -m train", *(Path(w).name if w.startswith("/") else w for w in words)])


def predict_part(bundle: Bundle, dataset: Dataset, args: argparse.Namespace) -> dict:
    """Prediction on the test images; writes calibration.json and curves.json."""
    began = time.perf_counter()
    images, labels = dataset.tensors(dataset.indices("test"))
    p = mean_prediction(bundle.model, images, mirror=bundle.data.flips).cpu().numpy()
    report = prediction_report(p, labels.numpy(), bundle.names, seed=args.seed)
    report["rows"] = "test images, of combinations that training has seen"
    part = {"prediction": report | {"draws": DRAWS, "mirrored": bundle.data.flips, "split": "test"}}
    novel, novel_labels = dataset.tensors(dataset.indices("test", held_out=True))
    if len(novel) > 1:
        p_novel = mean_prediction(bundle.model, novel, mirror=bundle.data.flips).cpu().numpy()
        found = prediction_report(p_novel, novel_labels.numpy(), bundle.names, seed=args.seed)
        found.pop("attributes")
        part["prediction_held_out_combinations"] = found | {"split": "test"}
    ordinary = images[:ORDINARY_IMAGES]
    strange = strangers(ordinary[:STRANGERS], bundle.data.faces, args.seed)
    for place in args.other or ():
        stranger = Dataset.open(place)
        if stranger.image_size != dataset.image_size:
            raise ValueError(f"--other has {stranger.image_size} px, the model's data {dataset.image_size} px.")
        strange[stranger.info["title"]] = stranger.tensors(stranger.indices("test")[:STRANGERS])[0]
    calibration = calibration_report(p, labels.numpy(), bundle.names) | {"model": bundle.name, "split": "test"}
    known = dataset.tensors(dataset.indices("val")[:GATE_IMAGES])[0]
    calibration["gate"] = gate_report(bundle.model, known, ordinary, strange)
    part["gate"] = {key: calibration["gate"][key] for key in ("auroc", "worst_auroc", "ordinary_share", "images")}
    write_json(args.model / "calibration.json", calibration)
    write_json(
        args.model / "curves.json", {"format": 1, "model": bundle.name} | curves(p, labels.numpy(), bundle.names)
    )
    part["prediction"]["seconds"] = round(time.perf_counter() - began, 1)
    return part


def synthesis_part(setting: Setting, args: argparse.Namespace) -> dict:
    """Every figure of conditional samples, fidelity, plain JEM, and the grid of samples."""
    bundle, judge = setting.bundle, setting.judge
    plan = make_plan(bundle, judge, args.samples, len(variants_of(bundle)))
    drawn = draw_plan(setting, plan)
    part: dict = {"judge": judge_facts(judge), "synthesis": main_figures(setting, plan, drawn)}
    start = plain_start(bundle)
    plain = draw_plan(setting, plan.plain(), start)
    part[f"synthesis_{start}"] = main_figures(setting, plan.plain(), plain, start)
    part["synthesis"]["samplers_and_starts"] = variants(setting, plan, drawn, plain)
    part["fidelity"] = free_part(setting, args.free or plan.free, part["synthesis"])
    part |= steering_part(setting, plan, args.samples)
    part |= extras(setting, args, plan, plain)
    part["samples"] = sample_sheet(bundle, args)
    return part


def steering_part(setting: Setting, plan: Plan, samples: int | None = None) -> dict:
    """Walks of toggles and long wandering, of a model that knows noise levels."""
    if not setting.bundle.levels:
        return {}
    walks = WALKS if samples is None else max(2, min(WALKS, samples // 2))
    return {"steering": steering(setting, plan, walks), "long_run": long_run(setting, plan)}


def triples_part(setting: Setting, plan: Plan, evaluation: dict) -> dict:
    """The triples from either start, in the place of those that were there."""
    plan = replace(plan, singles=[], seen_pairs=[], held_out_pairs=[])
    start, part = plain_start(setting.bundle), {}
    for key, chains, begun in (("synthesis", plan, MAIN_START), (f"synthesis_{start}", plan.plain(), start)):
        figures = main_figures(setting, chains, draw_plan(setting, chains, begun), begun)
        there = {name: value for name, value in evaluation[key].items() if name not in TRIPLES}
        part[key] = there | {name: figures[name] for name in chains.measures()}
    return part


def free_part(setting: Setting, chains: int, figures: dict) -> dict:
    """Fidelity, by chains that are asked for nothing. The distance falls with their number: compare equal ones."""
    request = setting.request(Condition.free(setting.bundle.names), chains)
    return fidelity(setting, setting.draw([request], "free chains")[0], figures)


def extras(setting: Setting, args: argparse.Namespace, plan: Plan, drawn: dict[str, list[Drawn]]) -> dict:
    """What is made only when asked for: plain JEM beside the model, edits of pictures, and the map of all pairs."""
    bundle, part = setting.bundle, {}
    if args.jem:
        jem = Bundle.read(args.jem)
        if jem.names != bundle.names or jem.model.image_size != bundle.model.image_size:
            raise ValueError(f"The factored model {jem.name} has other attributes or another size than {bundle.name}.")
        part["factored_jem"] = factored(setting, jem, plan, drawn)
    if args.edits:
        part["editing"] = editing(setting, plan, args.edits)
    if args.heatmap:
        write_json(args.model / "pairs.json", heat_map(setting, args.heatmap) | {"model": bundle.name})
    return part


def add(bundle: Bundle, dataset: Dataset, judge: Judge | None, args: argparse.Namespace) -> int:
    """The extras alone, put beside the figures that an earlier run wrote."""
    chains = bool(args.jem or args.heatmap or args.edits or args.free or args.steering or args.triples)
    if bundle.evaluation is None or (judge is None and chains) or not (chains or args.prediction):
        raise ValueError(
            "--add needs a model that was evaluated, and --prediction or, for one that samples, --triples, --steering, "
            "--jem, --heatmap, --edits or --free."
        )
    part = predict_part(bundle, dataset, args) if args.prediction else {}
    if judge is not None and chains:
        setting = Setting(bundle, dataset, judge, args.seed + 1)  # other chains than those of the evaluation
        plan = make_plan(bundle, judge, args.samples or ADDED_CHAINS)
        if args.triples:
            part |= triples_part(setting, plan, bundle.evaluation)
        if args.steering:
            part |= steering_part(setting, plan, args.samples)
        plan.singles, plan.triples, plan.held_out_triples = [], [], []
        part |= extras(setting, args, plan, draw_plan(setting, plan, plain_start(bundle)) if args.jem else {})
        if args.free:
            part["fidelity"] = free_part(setting, args.free, bundle.evaluation["synthesis"])
        part["judge_of_additions"] = judge_facts(judge)
    evaluation = bundle.evaluation | part | {"added_by": shown_command(args)}
    evaluation["measures"] = measures(evaluation)
    bundle.reports["evaluation"] = evaluation
    write_json(args.model / "evaluation.json", evaluation)
    from train.card import write_card

    write_card(args.model)
    print(f"Added to {args.model}: {', '.join([*part, *(['pairs.json'] if args.heatmap else [])])}.")
    return 0


def judge_facts(judge: Judge) -> dict:
    keys = (
        "mean_accuracy",
        "mean_accuracy_shuffled_labels",
        "accuracy",
        "balanced_accuracy",
        "tested_on",
        "trained_on",
    )
    return {key: judge.facts[key] for key in keys}


def sample_sheet(bundle: Bundle, args: argparse.Namespace) -> dict:
    """8 conditions x 8 fresh chains, nothing picked, into samples.png."""
    conditions = shown_conditions(bundle)
    scale = max(1, 64 // bundle.model.image_size)
    sheet = condition_sheet(bundle, conditions, 8, seed=args.seed, scale=scale)
    save_picture(sheet, args.model / "samples.png")
    rows = [{"condition": str(c), "training_images": bundle.support.count(c)} for c in conditions]
    return {"file": "samples.png", "seed": args.seed, "chains": 8, "rows": rows}


def quick(bundle: Bundle, dataset: Dataset, judge: Judge | None, args: argparse.Namespace, began: float) -> int:
    """A first look: prediction on a few images, few chains per condition. Writes nothing."""
    rows = np.concatenate([dataset.indices("test")[:QUICK_IMAGES]])
    images, labels = dataset.tensors(rows)
    p = mean_prediction(bundle.model, images, draws=1).cpu().numpy()
    micro = prediction_report(p, labels.numpy(), bundle.names, resamples=2)["micro"]
    line = ", ".join(f"{name} {micro[name]['value']:.2%}" for name in ("accuracy", "auroc", "auprc", "ece"))
    print(f"{bundle.name}, {len(rows)} images: {line}")
    if judge is not None:
        setting = Setting(bundle, dataset, judge, args.seed, show=sys.stderr.isatty())
        plan = quick_plan(bundle, judge, args.samples)
        figures = main_figures(setting, plan, draw_plan(setting, plan))
        print_quick(figures, list(plan.measures()))
    print(f"{time.perf_counter() - began:.0f} s")
    return 0


def print_quick(figures: dict, names: list[str]) -> None:
    heads = ("judged", "itself", "start", "real", "spread")
    print(f"{'':44s}" + "".join(f"{head:>8s}" for head in heads) + "  chains")
    for name in names:
        rows = figures[name]["conditions"]
        for row in rows:
            cells = [row.get(key, {}).get("value") for key in (*POOLED, "spread")]
            print(f"  {row['condition'][:42]:42s}{_cells(cells)}  {row['chains']}")
        total = summary(rows)
        spreads = [row["spread"]["value"] for row in rows if "spread" in row]
        cells = [total.get(key, {}).get("value") for key in POOLED] + ([float(np.median(spreads))] if spreads else [])
        title = name.replace("_", " ").upper()
        print(f"{title:44s}{_cells(cells)}  {total['chains']} in {total['seconds']:.0f} s")


def _cells(values: list[float | None]) -> str:
    return "".join(f"{'-':>8s}" if value is None else f"{value:8.0%}" for value in values)
