"""How it works in six pictures of the live kernel, for either kind of model.

Logits, energy, then how pictures are made (without noise levels: Langevin, Gibbs and marginalizing; with them: lifting,
coming down, and what happens to attributes that nobody asked for), and calibration. A picture is a title, short
sentences, and parts that assets/explain.js draws: images in a row, bars, or lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from app.attributes import caption, sentence
from app.uploads import as_uri
from jem_core.bundle import Bundle
from jem_core.chains import sample
from jem_core.condition import Condition
from jem_core.draws import density_figures
from jem_core.model import JointEnergyModel
from jem_core.random import chain_generators, normal
from jem_core.samplers import SAMPLERS, ChainState, StepInfo
from jem_core.schedules import descend

SHOWN_STEPS = (0, 5, 15, 30, 60)
SHOWN_LEVELS = (0.3, 1.0, 3.0)
BARS = 6

Past = tuple[ChainState, StepInfo | None]
Progress = Callable[[], None]


class Asked(NamedTuple):
    """What a picture is drawn of."""

    bundle: Bundle
    condition: Condition
    seed: int
    progress: Progress  # is called before every step


def pictures(bundle: Bundle, seed: int = 0, progress: Progress = lambda: None) -> list[dict]:
    """All six, for this model and seed. `progress` is called before every step."""
    required = _usual(bundle)
    example = _example(bundle, required, seed, progress)
    asked = Asked(bundle, required, seed, progress)
    if bundle.levels:
        made = [_lifting(bundle, example, seed, progress), _coming_down(asked), _both(asked)]
    else:
        made = [_langevin(asked), _gibbs(asked), _both(asked)]
    return [_logits(bundle, example), _energy(bundle, example, seed), *made, _calibration(bundle)]


def _usual(bundle: Bundle) -> Condition:
    """An attribute that is easy to see: the first of a few well-known ones, or the model's first."""
    known = [name for name in ("Eyeglasses", "Smiling", "Wearing_Hat") if name in bundle.names]
    return Condition.from_lists(bundle.names, required=known[:1] or bundle.names[:1])


def _example(bundle: Bundle, condition: Condition, seed: int, progress: Progress) -> Tensor:
    """A picture of the kind that the model knows, uint8: one of its buffer, or a sample."""
    if bundle.buffer is not None and len(bundle.buffer):
        return bundle.buffer.images[seed % len(bundle.buffer.images)]
    drawn = sample(bundle, condition, 1, seed=seed, progress=lambda done, total: progress())
    return (drawn.images[0] * 255).round().byte().cpu()


def _uri(x: Tensor) -> str:
    return as_uri((x.clamp(0, 1) * 255).round().byte().cpu())


def _logits(bundle: Bundle, image: Tensor) -> dict:
    x = ((image.float() + 0.5) / 256)[None].to(bundle.device)
    logits = bundle.model.logits(bundle.model.encode(x))[0].cpu()
    sure = logits.softmax(dim=-1)[:, 1]
    order = sure.argsort(descending=True).tolist()
    order = [*order[: BARS // 2], *order[BARS // 2 :][-(BARS // 2) :]]  # what is there, and what is not
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
    free = Condition.free(bundle.names).tensor(1, bundle.device)
    blur = bundle.start.images("informed", free, randomness)[0]
    stored = {
        "a sample": image,
        "a blur of the data": (blur * 255).byte().cpu(),
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


def _chain(asked: Asked, sampler: str, steps: int, **changes: float) -> list[Past]:
    """One chain from a blur of the data, every step kept."""
    bundle, condition, seed, progress = asked
    own = {} if bundle.levels else {"steps": steps}
    chains = bundle.chains(condition, 1, seed, sampler=sampler, start="informed", **own, **changes)
    past: list[Past] = [(chains.state, None)]
    while not chains.finished and len(past) <= steps:
        progress()
        info = chains.advance()
        past.append((chains.state, info))
    return past


def _lifting(bundle: Bundle, image: Tensor, seed: int, progress: Progress) -> dict:
    """A picture under more and more noise, and what the model makes of it."""
    model = bundle.model
    clean = model.encode(((image.float() + 0.5) / 256)[None].to(bundle.device))
    noise = normal(clean.shape, chain_generators(seed, 1, bundle.device), bundle.device)
    kernel = bundle.sampler(bundle.sampling)
    free = Condition.free(bundle.names).tensor(1, bundle.device)
    images = []
    for level in SHOWN_LEVELS:
        progress()
        state = kernel.init(clean + level * noise, free, chain_generators(seed, 1, bundle.device), level=level)
        _, info = kernel.step(state, descend([level])[0], chain_generators(seed, 1, bundle.device))
        images += [_shown(model, state.x, f"noise {level:g}"), _shown(model, info.denoised, "cleaned")]
    return {
        "title": "3. Lift: noise hides, the model guesses",
        "text": "The gradient of log p\u0303 with respect to the pixels says how to make a noisy image more likely; "
        "followed to its end, it gives a clean image. Under a little noise that is the image itself. "
        "Under much noise it is a guess: the more noise, the more may change.",
        "images": images,
    }


def _coming_down(asked: Asked) -> dict:
    past = _chain(asked, "marginalizing", asked.bundle.sampling["steps"] * 2)
    picked = [round(i * (len(past) - 2) / (len(SHOWN_STEPS) - 1)) + 1 for i in range(len(SHOWN_STEPS))]
    model = asked.bundle.model
    images = [_shown(model, past[i][1].denoised, f"noise {past[i - 1][0].level:.2g}") for i in picked if past[i][1]]
    return {
        "title": "4. Come down: less noise, step by step",
        "text": "A chain begins under much noise and is asked for something: "
        f"{sentence(asked.condition)}. Each step goes part of the way to the clean image and adds a little noise, "
        "less and less. Change what you ask for, and it is lifted again.",
        "images": images,
        "lines": [{"label": "noise level", "values": [state.level for state, _ in past]}],
    }


def _shown(model: JointEnergyModel, x: Tensor, text: str) -> dict:
    return {"src": _uri(model.decode(x)[0]), "text": text}


def _langevin(asked: Asked) -> dict:
    (before, _), (after, info) = _chain(asked, "marginalizing", 1, noise_std=0.0)
    push = after.x[0] - before.x[0]
    largest = push.abs().max().clamp(min=1e-6)
    later = _chain(asked, "marginalizing", 20)[-1][0]
    return {
        "title": "3. A Langevin step climbs, and adds a little noise",
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


def _gibbs(asked: Asked) -> dict:
    past = _chain(asked, "resampling", SHOWN_STEPS[-1])
    flips = [int(info.flipped.sum()) for _, info in past[1:]]
    return {
        "title": "4. A Gibbs sweep takes turns: labels, then image",
        "text": "First every free label is drawn from its probability, exactly. Then the image moves with these "
        f"labels. What you asked for ({sentence(asked.condition)}) stays fixed. Labels and image come to agree.",
        "images": _strip(past),
        "lines": [{"label": "labels that flipped in each step", "values": flips}],
    }


def _both(asked: Asked) -> dict:
    lines, images = [], []
    k = asked.condition.values.index(1)
    for sampler in reversed(SAMPLERS):
        past = _chain(asked, sampler, SHOWN_STEPS[-1])
        lines.append({"label": sampler, "values": [float(info.probabilities[0, k]) for _, info in past[1:]]})
        images.append(_shown(asked.bundle.model, past[-1][0].x, sampler))
    return {
        "title": "5. What nobody asked for: drawn, or summed out",
        "text": "Resampling draws the free labels at every step, and they pull. Marginalizing draws none: free "
        "attributes count with both values, by logsumexp, and only what you asked for pulls. "
        "Same start, same noise; the lines show the probability of what was asked.",
        "images": images,
        "lines": lines,
        "range": [0, 1],
    }


def _calibration(bundle: Bundle) -> dict:
    picture = {
        "title": "6. When it says 80 %, is it right 80 times in 100?",
        "text": "Test images with the same answer are counted. On the dotted line, predicted equals actual.",
    }
    if bundle.calibration is None:
        return picture | {"note": "This model has not been evaluated yet, so there is nothing to count."}
    bins = bundle.calibration.part()["bins"]
    pairs = zip(bins["mean_prediction"], bins["positive_rate"], strict=True)
    points = [pair for pair in pairs if pair[0] is not None]
    return picture | {"points": points, "note": f"All attributes of {bundle.calibration.images:,} test images."}
