"""The synthesis part of the evaluation: chains by plan, judged; starts and samplers; fidelity; plain JEM beside it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from tqdm import tqdm

from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.data.dataset import Dataset
from jem_core.fidelity import compare_features, nearest_distances, spread
from jem_core.judge import Judge, judged_right, right
from jem_core.metrics import rounded
from jem_core.random import generator
from jem_core.verdicts import Drawn, Request, draw_all, filtered, score, share, shuffled_right, summary
from train.plan import MEASURES, Plan, all_pairs

MAIN_START = "conditional"  # noise that knows what is asked
# Both samplers from every start, but what the main figures are made of.
VARIANTS = (
    ("resampling", "conditional"),
    ("resampling", "informed"),
    ("marginalizing", "uniform"),
    ("resampling", "uniform"),
    ("marginalizing", "buffer-match"),
    ("resampling", "buffer-match"),
)
LEVEL_VARIANTS = (
    ("resampling", "conditional"),
    ("resampling", "noise"),
    ("marginalizing", "informed"),
    ("resampling", "informed"),
)
START_IMAGES = 400  # of the start, judged before any step
REAL_IMAGES = 300  # of a condition, whose spread is taken, at most


@dataclass
class Setting:
    """What every part of the evaluation needs."""

    bundle: Bundle
    dataset: Dataset
    judge: Judge
    seed: int = 0
    show: bool = True
    used_seeds: int = field(default=0)

    def request(self, condition: Condition, n: int, sampler: str = "marginalizing", start: str = MAIN_START) -> Request:
        """A request with a seed of its own."""
        self.used_seeds += 1
        return Request(condition, n, sampler, start, self.seed * 10_000 + self.used_seeds)

    def draw(self, requests: Sequence[Request], title: str, bundle: Bundle | None = None) -> list[Drawn]:
        with tqdm(
            total=1.0, desc=title, disable=not self.show, bar_format="{desc}: {percentage:3.0f}% {elapsed}"
        ) as bar:
            return draw_all(
                bundle or self.bundle, requests, progress=lambda done, all_: bar.update(done / all_ - bar.n)
            )


def plain_start(bundle: Bundle) -> str:
    """Noise that does not know what is asked: pure noise, or the data's Gaussian for chains without noise levels."""
    return "noise" if bundle.levels else "informed"


def variants_of(bundle: Bundle) -> tuple[tuple[str, str], ...]:
    return LEVEL_VARIANTS if bundle.levels else VARIANTS


def draw_plan(setting: Setting, plan: Plan, start: str = MAIN_START) -> dict[str, list[Drawn]]:
    """The chains of the main figures: marginalizing, unfiltered."""
    named = [(name, one) for name, found in plan.measures().items() for one in found]
    requests = [setting.request(condition, plan.chains[name], start=start) for name, condition in named]
    drawn = setting.draw(requests, f"chains of every condition, {start} start")
    grouped: dict[str, list[Drawn]] = {name: [] for name in plan.measures()}
    for (name, _), one in zip(named, drawn, strict=True):
        grouped[name].append(one)
    return grouped


def main_figures(setting: Setting, plan: Plan, drawn: dict[str, list[Drawn]], start: str = MAIN_START) -> dict:
    """Judged right and self-consistency by measure, with best-of-10 and the check against shuffled conditions."""
    real = Yardsticks(setting)
    figures: dict = {"steps": setting.bundle.sampling["steps"], "settings": setting.bundle.sampling}
    figures |= {"sampler": "marginalizing", "start": start, "attributes": visible_note(setting, plan)}
    for name, group in drawn.items():
        scores = [score(one, setting.judge) | real.of(one) for one in group]
        figures[name] = {"summary": summary(scores), "conditions": scores}
    for name in ("seen_pairs", "held_out_pairs"):
        kept = [filtered(one) for one in drawn.get(name, ()) if one.request.n >= 10]
        if kept:
            scores = [score(one, setting.judge) | {"drawn": one.request.n} for one in kept]
            figures[f"{name}_best_of_10"] = {"summary": summary(scores), "conditions": scores}
    pairs = [one for name in ("seen_pairs", "held_out_pairs") for one in drawn.get(name, ())]
    if pairs:
        own = [right(one.samples.probabilities.cpu(), one.request.condition.tensor(one.request.n)) for one in pairs]
        figures["pairs_self_consistent"] = share(torch.cat(own))
        figures["pairs_shuffled_conditions"] = shuffled_right(pairs, setting.judge, setting.seed) | {
            "base_rate": real.base_rate([one.request.condition for one in pairs])
        }
    return figures


def visible_note(setting: Setting, plan: Plan) -> dict:
    chosen = len(plan.visible) < len(setting.bundle.names)
    how = "the ones that the judge recognizes best on real held-out images, by balanced accuracy" if chosen else "all"
    return {"names": plan.visible, "chosen": how}


class Yardsticks:
    """What samples stand between: their start, and real images of the condition."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        dataset = setting.dataset
        self.unseen = np.flatnonzero(dataset.split > 0)  # by the judge and by the model
        self.all = np.arange(len(dataset))
        self.unseen_judged = setting.judge.probabilities(dataset.tensors(self.unseen)[0])

    def _rows(self, condition: Condition, among: np.ndarray) -> np.ndarray:
        labels = torch.from_numpy(self.setting.dataset.labels[among].astype(np.int64))
        return among[condition.matches(labels).numpy()]

    def of(self, drawn: Drawn) -> dict:
        """The judge's verdict on starts and on real images of the condition; the spread relative to theirs."""
        condition, dataset, bundle = drawn.request.condition, self.setting.dataset, self.setting.bundle
        facts: dict = {"training_images": bundle.support.count(condition)}
        randomness = generator(self.setting.seed, bundle.device)
        asked = condition.tensor(START_IMAGES, bundle.device)
        starts = bundle.start.images(drawn.request.start, asked, randomness)
        facts["judged_right_start"] = share(judged_right(self.setting.judge, starts.cpu(), condition))
        real = self.unseen_judged[np.isin(self.unseen, self._rows(condition, self.unseen))]
        if len(real):
            facts["judged_right_real"] = share(right(real, condition.tensor(len(real))))
        rows = self._rows(condition, self.all)[:REAL_IMAGES]
        if len(rows) >= 10 and drawn.request.n >= 2:
            own, theirs = drawn.samples.images.cpu(), dataset.tensors(rows)[0]
            pixels, blocks = (rounded(spread(own, block) / spread(theirs, block)) for block in (1, 4))
            counts = {"chains": drawn.request.n, "real_images": len(rows)}
            facts["spread"] = {"value": pixels, "without_grain": blocks} | counts
        return facts

    def base_rate(self, conditions: Sequence[Condition]) -> float:
        """How often a real image meets one of the conditions by chance."""
        rates = [len(self._rows(condition, self.unseen)) / len(self.unseen) for condition in conditions]
        return rounded(float(np.mean(rates)))


def variants(setting: Setting, plan: Plan, *drawn: dict[str, list[Drawn]]) -> list[dict]:
    """Both samplers from every start, on the same few pairs; `drawn` has the marginalizing chains that are there."""
    pairs = plan.variant_pairs()
    there = [one for group in drawn for name in ("seen_pairs", "held_out_pairs") for one in group.get(name, ())]
    others = variants_of(setting.bundle)
    requests = [setting.request(c, plan.variant, *variant) for variant in others for c in pairs]
    chains = [one for one in there if one.request.condition in pairs]
    chains += setting.draw(requests, "other samplers and starts")
    table = []
    main = [("marginalizing", start) for start in (MAIN_START, plain_start(setting.bundle))]
    for sampler, start in (*main, *others):
        rows = [one for one in chains if (one.request.sampler, one.request.start) == (sampler, start)]
        entry: dict = {"sampler": sampler, "start": start}
        for name, group in (("seen_pairs", plan.seen_pairs), ("held_out_pairs", plan.held_out_pairs)):
            scores = [score(one, setting.judge) for one in rows if one.request.condition in group]
            if scores:
                entry[name] = summary(scores)
        table.append(entry)
    return table


def fidelity(setting: Setting, free: Drawn, figures: dict) -> dict:
    """Samples of no condition against real held-out images, in the judge's features and in pixels.

    The same for as many real images (the best to hope for) and for the start noise (the worst).
    """
    dataset, n = setting.dataset, free.request.n
    real = dataset.tensors(dataset.indices("test"))[0][:1500]
    other = dataset.tensors(dataset.indices("val"))[0][:n]
    free_rows = free.request.condition.tensor(n)
    noise = setting.bundle.start.images("informed", free_rows, generator(setting.seed)).cpu()
    target = setting.judge.embed(real)
    sets = {"samples": free.samples.images.cpu(), "real_images": other, "start_noise": noise}
    report: dict = {
        "reference_images": len(real),
        "features": "judge, globally pooled",
        "seconds": round(free.seconds, 2),
    }
    report |= {name: compare_features(setting.judge.embed(images), target) for name, images in sets.items()}
    rows = [row for name in MEASURES if name in figures for row in figures[name]["conditions"]]
    ratios = [row["spread"] for row in rows if "spread" in row]
    if ratios:
        report["spread"] = {"conditions": len(ratios)} | _middle([ratio["value"] for ratio in ratios])
        report["spread_without_grain"] = _middle([ratio["without_grain"] for ratio in ratios])
    report["nearest_training_image"] = memorization(dataset, free, other)
    return report


def _middle(values: Sequence[float]) -> dict:
    return {"median": rounded(float(np.median(values))), "lowest": min(values), "highest": max(values)}


def memorization(dataset: Dataset, free: Drawn, real: torch.Tensor) -> dict:
    """Distance to the nearest training image, of samples and of real images that training never saw."""
    train = dataset.indices("train")
    own = nearest_distances(free.samples.images.cpu(), dataset.images, train)
    theirs = nearest_distances((real.float() + 0.5) / 256, dataset.images, train)
    closest = torch.quantile(theirs, 0.01)
    return {
        "distance": "root mean square over pixels in [0, 1]",
        "samples_median": rounded(own.median().item()),
        "samples_smallest": rounded(own.min().item()),
        "real_median": rounded(theirs.median().item()),
        "real_first_percentile": rounded(closest.item()),
        "samples_nearer_than_that": rounded((own < closest).float().mean().item()),
        "training_images": len(train),
        "samples": len(own),
    }


def factored(setting: Setting, jem: Bundle, plan: Plan, drawn: dict[str, list[Drawn]]) -> dict:
    """What plain JEM cannot do: the same pairs by direct sampling from the factored model, and by its only route.

    The route: sample without a condition, classify, keep what matches. A second of either route is worth as many
    samples as the judge finds right. `drawn` and the direct chains come from noise that does not know the condition,
    so that what is compared is the models and not the start.
    """
    groups = {name: [one.request.condition for one in drawn.get(name, ())] for name in ("seen_pairs", "held_out_pairs")}
    n = min(40, max(2, 2 * plan.variant))
    asked = [condition for group in groups.values() for condition in group]
    requests = [setting.request(condition, n, start=plain_start(jem)) for condition in asked]
    direct = setting.draw(requests, "plain JEM, direct", jem)
    free = setting.draw([setting.request(Condition.free(jem.names), plan.free)], "plain JEM, free", jem)[0]
    report: dict = {
        "model": jem.name,
        "start": plain_start(jem),
        "steps": jem.sampling["steps"],
        "free_chains": plan.free,
    }
    report["free_seconds"] = round(free.seconds, 2)
    for name, group in groups.items():
        if not group:
            continue
        rows = []
        for condition in group:
            own = next(one for one in drawn[name] if one.request.condition == condition)
            theirs = next(one for one in direct if one.request.condition == condition)
            rows.append(_beside(setting.judge, condition, own, theirs, free))
        report[name] = {"conditions": rows, "summary": _means(rows)}
    return report


def _beside(judge: Judge, condition: Condition, own: Drawn, direct: Drawn, free: Drawn) -> dict:
    kept = right(free.samples.probabilities.cpu(), condition.tensor(free.request.n))
    verdicts = judged_right(judge, free.samples.images[kept].cpu(), condition) if kept.any() else kept[:0]
    entry: dict = {"condition": str(condition)}
    for name, one in (("ours", own), ("direct", direct)):
        found = score(one, judge)
        figures = {key: found[key] for key in ("judged_right", "self_consistent", "chains", "seconds")}
        entry[name] = figures | {"right_a_second": _rate(found["judged_right"]["count"], one.seconds)}
    route = {"kept": int(kept.sum()), "of": len(kept), "judged_right": share(verdicts)}
    entry["route"] = route | {"right_a_second": _rate(int(verdicts.sum()), free.seconds)}
    return entry


def _rate(count: int, seconds: float) -> float:
    return rounded(count / max(seconds, 1e-9), 4)


def _means(rows: Sequence[dict]) -> dict:
    table: dict = {"conditions": len(rows)}
    for name in ("ours", "direct", "route"):
        hits, n = (sum(row[name]["judged_right"][part] for row in rows) for part in ("count", "of"))
        table[name] = {
            "judged_right": rounded(hits / n) if n else None,
            "of": n,
            "right_a_second": rounded(float(np.mean([row[name]["right_a_second"] for row in rows])), 4),
        }
    table["route"]["conditions_never_met"] = sum(row["route"]["kept"] == 0 for row in rows)
    return table


def heat_map(setting: Setting, chains: int) -> dict:
    """Judged accuracy of every pair of attributes, from a few chains each: a map, no measurement."""
    began = time.perf_counter()
    conditions = all_pairs(setting.bundle)
    drawn = setting.draw([setting.request(condition, chains) for condition in conditions], "every pair")
    rows = []
    for one in drawn:
        found = score(one, setting.judge)
        rows.append(
            {
                "pair": found["required"],
                "judged_right": found["judged_right"]["value"],
                "self_consistent": found["self_consistent"]["value"],
                "training_images": setting.bundle.support.count(one.request.condition),
            }
        )
    return {
        "format": 1,
        "names": list(setting.bundle.names),
        "chains": chains,
        "held_out": [str(pair) for pair in setting.bundle.data.held_out],
        "pairs": rows,
        "seconds": round(time.perf_counter() - began, 1),
    }
