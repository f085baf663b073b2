"""How it works in six pictures of the live kernel: logits, energy, Langevin, Gibbs, marginalizing, calibration.

A picture is a title, short sentences, and parts that assets/explain.js draws: images in a row, bars, or lines.
"""

from __future__ import annotations

import torch
from torch import Tensor

from app.attributes import caption
from app.pictures import as_uri
from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.draws import density_figures
from jem_core.random import chain_generators
from jem_core.samplers import SAMPLER_NAMES, ChainState, Sampler, StepInfo

SHOWN_STEPS = (0, 5, 15, 30, 60)
BARS = 6

Past = tuple[ChainState, StepInfo | None]


def pictures(bundle: Bundle, seed: int = 0) -> list[dict]:
    """All six, for this model and seed."""
    example = bundle.buffer.images[seed % len(bundle.buffer.images)]
    wanted = _usual(bundle)
    return [
        _logits(bundle, example),
        _energy(bundle, example, seed),
        _langevin(bundle, wanted, seed),
        _gibbs(bundle, wanted, seed),
        _marginalizing(bundle, wanted, seed),
        _calibration(bundle),
    ]


def _usual(bundle: Bundle) -> Condition:
    """An attribute that is easy to see: the first of a few well-known ones, or the model's first."""
    known = [name for name in ("Eyeglasses", "Smiling", "Wearing_Hat") if name in bundle.names]
    return Condition.from_lists(bundle.names, wanted=known[:1] or bundle.names[:1])


def _uri(x: Tensor) -> str:
    return as_uri((x.clamp(0, 1) * 255).round().byte().cpu())


def _logits(bundle: Bundle, image: Tensor) -> dict:
    x = ((image.float() + 0.5) / 256)[None].to(bundle.device)
    logits = bundle.model.logits(x)[0].cpu()
    sure = logits.softmax(dim=-1)[:, 1]
    order = (sure - 0.5).abs().argsort(descending=True)[:BARS].tolist()
    bars = [
        {
            "label": caption(bundle.names[k]),
            "value": sure[k].item(),
            "text": f"{logits[k, 0]:.1f} | {logits[k, 1]:.1f}   {100 * sure[k]:.0f} %",
        }
        for k in order
    ]
    return {
        "title": "1. Two numbers for each attribute",
        "text": "A network looks at an image x and gives every attribute k two logits: f(x)[k][0] for without, "
        "f(x)[k][1] for with. Their softmax is the probability. So far this is an ordinary classifier.",
        "images": [{"src": as_uri(image), "text": "x"}],
        "bars": bars,
        "note": "Both logits, without | with, and the probability.",
    }


def _energy(bundle: Bundle, image: Tensor, seed: int) -> dict:
    size = bundle.model.image_size
    randomness = chain_generators(seed, 1, bundle.device)
    stored = {
        "a sample": image,
        "a blur of the data": (bundle.start("informed", 1, randomness)[0] * 255).byte().cpu(),
        "noise": (torch.rand((3, size, size), generator=torch.Generator().manual_seed(seed)) * 255).byte(),
        "one colour": torch.tensor([90, 140, 200], dtype=torch.uint8)[:, None, None].expand(3, size, size),
    }
    scores, _ = density_figures(bundle.model, torch.stack(list(stored.values())), draws=1)
    values = scores.cpu().tolist()
    low, high = min(values), max(values)
    bars = [
        {"label": name, "value": (value - low) / ((high - low) or 1), "text": f"log p\u0303(x) = {value:.1f}"}
        for name, value in zip(stored, values, strict=True)
    ]
    return {
        "title": "2. The same logits say how likely the image is",
        "text": "Softmax uses only the difference of two logits. Their size is free, and it becomes an energy: "
        "log p\u0303(x) is the sum over attributes of logsumexp f(x)[k]. High means likely.",
        "images": [{"src": as_uri(one.contiguous()), "text": name} for name, one in stored.items()],
        "bars": bars,
    }


def _chain(bundle: Bundle, sampler: str, condition: Condition, seed: int, steps: int, **changes: float) -> list[Past]:
    """One chain from a blur of the data, every step kept."""
    langevin, _ = bundle.langevin(**changes)
    kernel = Sampler(sampler, bundle.model, langevin)
    randomness = chain_generators(seed, 1, bundle.device)
    x = bundle.start("informed", 1, randomness)
    past: list[Past] = [(kernel.init(x, condition.tensor(1, bundle.device), randomness), None)]
    for _ in range(steps):
        past.append(kernel.step(past[-1][0], randomness))
    return past


def _langevin(bundle: Bundle, condition: Condition, seed: int) -> dict:
    (before, _), (after, info) = _chain(bundle, "marginalizing", condition, seed, 1, noise_std=0.0)
    push = after.x[0] - before.x[0]
    largest = push.abs().max().clamp(min=1e-6)
    later = _chain(bundle, "marginalizing", condition, seed, 20)[-1][0]
    return {
        "title": "3. A Langevin step climbs, and trembles a little",
        "text": "The gradient of log p\u0303 with respect to the pixels says how to make the image more likely. "
        "A step moves along it and adds a little noise: x \u2190 x + a \u00b7 gradient + s \u00b7 N(0, 1).",
        "images": [
            {"src": _uri(before.x[0]), "text": "x"},
            {"src": _uri(0.5 + 0.5 * push / largest), "text": "push, enlarged"},
            {"src": _uri(after.x[0]), "text": "after 1 step"},
            {"src": _uri(later.x[0]), "text": "after 20"},
        ],
        "note": f"Norm of this gradient: {info.grad_norm.item():.3g}. Largest move of a pixel: {largest.item():.2g}.",
    }


def _strip(past: list[Past]) -> list[dict]:
    return [{"src": _uri(past[step][0].x[0]), "text": f"step {step}"} for step in SHOWN_STEPS]


def _gibbs(bundle: Bundle, condition: Condition, seed: int) -> dict:
    past = _chain(bundle, "resampling", condition, seed, SHOWN_STEPS[-1])
    flips = [int(info.flipped.sum()) for _, info in past[1:]]
    return {
        "title": "4. A Gibbs sweep takes turns: labels, then image",
        "text": "First every free label is drawn from its probability, exactly. Then the image moves with these "
        f"labels. What you asked for ({condition}) stays fixed. Labels and image find each other.",
        "images": _strip(past),
        "lines": [{"label": "labels that flipped in each step", "values": flips}],
    }


def _marginalizing(bundle: Bundle, condition: Condition, seed: int) -> dict:
    lines, images = [], []
    k = condition.values.index(1)
    for sampler in reversed(SAMPLER_NAMES):
        past = _chain(bundle, sampler, condition, seed, SHOWN_STEPS[-1])
        lines.append({"label": sampler, "values": [float(info.probabilities[0, k]) for _, info in past[1:]]})
        images.append({"src": _uri(past[-1][0].x[0]), "text": sampler})
    return {
        "title": "5. Or sum the free labels out",
        "text": "Marginalizing draws no labels: free attributes count with both values, by logsumexp, and only what "
        "you asked for pulls. Same start, same noise; the lines show the probability of what was asked.",
        "images": images,
        "lines": lines,
        "range": [0, 1],
    }


def _calibration(bundle: Bundle) -> dict:
    picture = {
        "title": "6. When it says 80 %, is it so in 80 of 100?",
        "text": "Held-out images with the same answer are counted. On the dotted line, what is said is what is so.",
    }
    if bundle.calibration is None:
        return picture | {"note": "This model was not evaluated yet, so there is nothing to count."}
    bins = bundle.calibration["all"]["bins"]
    points = list(zip(bins["mean_prediction"], bins["positive_rate"], strict=True))
    return picture | {"points": points, "note": f"All attributes of {bundle.calibration['images']:,} held-out images."}
