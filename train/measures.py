"""The table at the top of everything: each measure with its value, interval, chain count and seconds."""

from __future__ import annotations

from collections.abc import Iterator

PREDICTION = {
    "accuracy": "accuracy",
    "f1": "F1",
    "auprc": "AUPRC",
    "auroc": "AUROC",
    "ece": "ECE, closed bins",
    "ece_paper": "ECE, the paper's half-open bins",
    "ece_adaptive": "ECE, bins of equal mass",
    "brier": "Brier score",
}
SYNTHESIS = {
    "singles": "judged right, single attributes",
    "seen_pairs": "judged right, seen pairs",
    "held_out_pairs": "judged right, held-out pairs",
    "triples": "judged right, triples",
    "held_out_triples": "judged right, triples with a held-out pair",
    "seen_pairs_best_of_10": "judged right, seen pairs, best of 10",
    "held_out_pairs_best_of_10": "judged right, held-out pairs, best of 10",
}


def measures(evaluation: dict) -> list[dict]:
    """Rows of {key, measure, value, low, high, images or chains, seconds}, read off the evaluation."""
    parts = (_prediction, _synthesis, _steering, _editing, _fidelity, _factored)
    return [row for part in parts for row in part(evaluation)]


def _prediction(evaluation: dict) -> Iterator[dict]:
    found = evaluation["prediction"]
    for average in ("micro", "macro"):
        for key, name in PREDICTION.items():
            facts = {"images": found["images"]}
            yield {"key": f"{average}_{key}", "measure": f"{name}, {average}", **found[average][key], **facts}


def _synthesis(evaluation: dict) -> Iterator[dict]:
    found = evaluation.get("synthesis", {})
    yield from _judged(found)
    yield from _judged(evaluation.get("synthesis_informed", {}), "informed_", ", informed start")
    yield from _judged(evaluation.get("synthesis_noise", {}), "noise_", ", from pure noise")
    if "pairs_self_consistent" in found:
        rate = {part: found["pairs_self_consistent"][part] for part in ("value", "low", "high")}
        chains = found["pairs_self_consistent"]["of"]
        yield {"key": "pairs_self_consistent", "measure": "self-consistency on pairs", **rate, "chains": chains}
    if "pairs_shuffled_conditions" in found:
        rate = {part: found["pairs_shuffled_conditions"][part] for part in ("value", "low", "high")}
        title = "judged right with conditions shuffled (must be low)"
        yield {"key": "pairs_shuffled", "measure": title, **rate, "chains": found["pairs_shuffled_conditions"]["of"]}


def _judged(found: dict, prefix: str = "", note: str = "") -> Iterator[dict]:
    for key, name in SYNTHESIS.items():
        if key in found:
            total = found[key]["summary"]
            rate = {part: total["judged_right"][part] for part in ("value", "low", "high")}
            counts = {"conditions": total["conditions"], "chains": _drawn(found[key]), "kept": total["chains"]}
            yield {"key": prefix + key, "measure": name + note, **rate, **counts, "seconds": total["seconds"]}


def _drawn(figures: dict) -> int:
    return sum(row.get("drawn", row["chains"]) for row in figures["conditions"])


def _steering(evaluation: dict) -> Iterator[dict]:
    """Random walks of toggles, and wandering."""
    if found := evaluation.get("steering"):
        chains = found["walks"] * found["chains"]
        for key, name in (("mean", "mean over all toggles"), ("after_last", f"after toggle {found['toggles']}")):
            rate = {part: found[key][part] for part in ("value", "low", "high")}
            yield {"key": f"steering_{key}", "measure": f"steering, judged right, {name}", **rate, "chains": chains}
        ratio = found["clipped"][-1] / max(found["data_clipped"], 1e-6)
        title = "steering, clipped pixels after the last toggle, times the data's"
        yield {"key": "steering_clipped", "measure": title, "value": ratio, "low": None, "high": None}
        kept = sum(found["kept_others"]) / len(found["kept_others"])
        title = "steering, other attributes kept at each change"
        yield {"key": "steering_kept", "measure": title, "value": kept, "low": None, "high": None}
    if found := evaluation.get("long_run"):
        for steps, rate in zip(found["steps"], found["judged_right"], strict=True):
            parts = {part: rate[part] for part in ("value", "low", "high")}
            title = f"wandering, judged right after {steps} steps"
            yield {"key": f"wandering_{steps}", "measure": title, **parts, "chains": found["chains"]}


def _editing(evaluation: dict) -> Iterator[dict]:
    """Test pictures with one attribute added."""
    if found := evaluation.get("editing"):
        pictures = {"images": found["judged_right"]["of"]}
        rate = {part: found["judged_right"][part] for part in ("value", "low", "high")}
        yield {"key": "edits", "measure": "edits, judged right", **rate, **pictures}
        for key, name in (
            ("others_kept", "other attributes kept"),
            ("outside_difference", "mean difference outside the change"),
        ):
            yield {"key": f"edits_{key}", "measure": f"edits, {name}", "value": found[key], "low": None, "high": None}


def _fidelity(evaluation: dict) -> Iterator[dict]:
    found = evaluation.get("fidelity")
    if not found:
        return
    if "spread" in found:
        title = "spread between chains of a condition, relative to data"
        yield {"key": "spread", "measure": title, "value": found["spread"]["median"], "low": None, "high": None}
    if "spread_without_grain" in found:
        value = found["spread_without_grain"]["median"]
        title = "the same between means of 4 x 4 pixels, without grain"
        yield {"key": "spread_without_grain", "measure": title, "value": value, "low": None, "high": None}
    for key, name in (("frechet_distance", "Frechet distance"), ("precision", "precision"), ("recall", "recall")):
        samples = found["samples"]
        yield {
            "key": key,
            "measure": f"{name}, judge features",
            "value": samples[key],
            "low": None,
            "high": None,
            "real_images": found["real_images"][key],
            "chains": samples["images"],
            "seconds": found["seconds"],
        }


def _factored(evaluation: dict) -> Iterator[dict]:
    found = evaluation.get("factored_jem", {})
    for key, name in (("seen_pairs", "seen pairs"), ("held_out_pairs", "held-out pairs")):
        if key not in found:
            continue
        for way, title in (("direct", "direct sampling"), ("route", "sample, classify, keep")):
            total = found[key]["summary"][way]
            yield {
                "key": f"factored_{way}_{key}",
                "measure": f"factored JEM, {title}: judged right, {name}",
                "value": total["judged_right"],
                "low": None,
                "high": None,
                "chains": total["of"],
                "right_a_second": total["right_a_second"],
            }


def is_plain(key: str) -> bool:
    """Not a share: shown as it is, not in percent."""
    return key in ("frechet_distance", "steering_clipped") or key.startswith("spread") or key.endswith("brier")


def print_measures(evaluation: dict) -> None:
    """The table on the terminal."""
    for row in evaluation["measures"]:
        if row["value"] is None:
            continue
        plain = is_plain(row["key"])
        value = f"{row['value']:.4g}" if plain else f"{row['value']:.2%}"
        interval = "" if row["low"] is None or plain else f"  ({row['low']:.1%} to {row['high']:.1%})"
        counted = next((f"{row[name]} {name}" for name in ("chains", "images") if name in row), "")
        seconds = f", {row['seconds']:.0f} s" if "seconds" in row else ""
        print(f"  {row['measure']:60s}{value:>9s}{interval:22s}  {counted}{seconds}")
