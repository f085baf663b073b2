"""The part of a model card that tells what was synthesized, and how the judge found it."""

from __future__ import annotations

from train.markdown import between, percent, table

JUDGED = {
    "singles": "single attributes",
    "seen_pairs": "seen pairs",
    "seen_pairs_best_of_10": "seen pairs, best of 10",
    "held_out_pairs": "held-out pairs",
    "held_out_pairs_best_of_10": "held-out pairs, best of 10",
    "triples": "triples",
    "held_out_triples": "triples with a held-out pair",
}

SETTINGS = ("start_level", "lift", "wander_level", "guidance", "margin", "variety")


def synthesis(evaluation: dict) -> list[str]:
    found, judge = evaluation["synthesis"], evaluation["judge"]
    plain_part = evaluation.get("synthesis_noise") or evaluation.get("synthesis_informed", {})
    article, plain_name = ("", "pure noise") if "synthesis_noise" in evaluation else ("the ", "informed start")
    rows = []
    for key, name in JUDGED.items():
        if key not in found:
            continue
        total = found[key]["summary"]
        rows.append([name, between(total["judged_right"]), percent(total["self_consistent"]["value"])])
        rows[-1] += [percent(total.get(side, {}).get("value")) for side in ("judged_right_start", "judged_right_real")]
        plain = plain_part.get(key, {}).get("summary", {})
        rows[-1].append(between(plain["judged_right"]) if plain else "-")
        rows[-1] += [f"{total['conditions']}", f"{total['chains']:,}", f"{total['seconds']}"]
    heads = ["conditions", "judged right", "own classifier agrees", "their starts", "real images"]
    heads += [f"judged right, {plain_name}", "how many", "samples", "seconds"]
    text = (
        "A judge of another architecture, trained on all training images, including the combinations that the model "
        f"never saw, looks at every sample; it is right on {percent(judge['mean_accuracy'])} of the labels of test "
        f"images. All asked attributes must be right. Sampler: {found['sampler']}, {found['steps']} steps from the "
        "conditional start: noise of a Gaussian fitted to images and labels, given the asked labels. How often the "
        "judge finds that noise right stands beside it, and so does the result from "
        f"{article}{plain_name}, which does not know what is asked. "
        f"{100 * evaluation['interval']:.0f} % intervals."
    )
    if "settings" in found:
        settings = {key: found["settings"][key] for key in SETTINGS if key in found["settings"]}
        text += " Settings: " + ", ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in settings.items()) + "."
    parts = ["## Conditional synthesis", text, table([*heads], rows), _attributes(found), _weakest(found)]
    added = evaluation.get("judge_of_additions", judge)
    if added["trained_on"] != judge["trained_on"]:
        parts.append(f"What was added later was judged by one trained on {added['trained_on']['rows']:,} images.")
    if "pairs_shuffled_conditions" in found:
        shuffled = found["pairs_shuffled_conditions"]
        parts.append(f"With the conditions of the pairs dealt out at random the judge agrees with {between(shuffled)}.")
    return [*parts, *_steering(evaluation), *_editing(evaluation), *_fidelity(evaluation), *_starts(found)]


def _steering(evaluation: dict) -> list[str]:
    """Random walks of toggles, and chains that wander."""
    if "steering" not in evaluation:
        return []
    found, long = evaluation["steering"], evaluation["long_run"]
    heads = ["after toggle", *map(str, range(found["toggles"] + 1))]
    right = ["judged right", *(percent(one["value"]) for one in found["judged_right"])]
    clipped = ["clipped pixels", *(percent(value) for value in found["clipped"])]
    kept = ["other attributes kept", "-", *(percent(value) for value in found["kept_others"])]
    text = (
        f"{found['walks']} random walks of {found['toggles']} toggles, {found['chains']} chains each: judged right "
        f"{between(found['mean'])} over all toggles. Clipped pixels of the data: {percent(found['data_clipped'])}. "
        f"Diverged chains: {found['diverged']}."
    )
    wandered = ", ".join(
        f"{percent(rate['value'])} at {steps} steps (Frechet distance {distance:.1f})"
        for steps, rate, distance in zip(long["steps"], long["judged_right"], long["frechet"], strict=True)
    )
    return ["### Steering", text, table(heads, [right, clipped, kept]), f"Wandering, judged right: {wandered}."]


def _editing(evaluation: dict) -> list[str]:
    """Test pictures with one attribute added."""
    found = evaluation.get("editing")
    if not found:
        return []
    names = {name.replace("_", " "): facts["judged_right"]["value"] for name, facts in found["attributes"].items()}
    text = (
        f"One attribute added to test pictures, {found['judged_right']['of']} edits: judged right "
        f"{between(found['judged_right'])} ({', '.join(f'{name} {percent(rate)}' for name, rate in names.items())}); "
        f"{percent(found['others_kept'])} of the other attributes kept."
    )
    if found["outside_difference"] is not None:
        text += f" Mean difference outside the change: {found['outside_difference']:.3f} of 1."
    return ["### Edits", text]


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
        f"{near['real_median']:.3f} for real images that training never saw, in the median. Nearer than all but 1 % of "
        f"those are {percent(near['samples_nearer_than_that'])} of the samples."
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


def factored(evaluation: dict) -> list[str]:
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
        table(["pairs", "way", "judged right", "samples", "right per second"], rows),
        closing,
    ]


def _count(never: int, found: dict) -> str:
    pairs = [found[key]["summary"]["conditions"] for key in ("seen_pairs", "held_out_pairs") if key in found]
    return "none" if not never else "all" if never == sum(pairs) else "some"
