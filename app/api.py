"""The documented endpoints, for programs and as MCP tools: /synthesize, /steer, /predict and /edit."""

from __future__ import annotations

import torch
from torch import Tensor

from app import answers, gpu, uploads
from app import parameters as p
from app.deadlines import Deadline
from app.drawing import draw, walk_through
from app.runtime import current
from app.settings import short
from jem_core import editing
from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.draws import mean_prediction
from jem_core.prediction import predict as predict_picture
from jem_core.samples import Samples
from jem_core.walks import Walk, parse_walk

MOST_IMAGES = 64
MOST_PARTS = 20  # of a walk
LONGEST_WALK = 2_000
MOST_VARIANTS = 8
SEEDS = 2**31 - 1
HIGHEST_LEVEL = 10.0  # of an edit
NO_CHANGE = "Choose an attribute to change first."
NONE = "the default is none; there must be one to add or to remove"
KEEP_BEST = "draw this many times n pictures and keep the n the model is most confident in"
WALK = (
    'what to ask for one after another: "Smiling+Eyeglasses; -Eyeglasses; +Wearing_Hat", where + requires, '
    f"- excludes and ~ frees an attribute; at most {MOST_PARTS} parts"
)


def build() -> None:
    """Offer all four; every range and default below is also what is checked."""
    limits = current().limits
    n = f"how many pictures; from 1 to {min(MOST_IMAGES, limits.chains)}"
    sampler = {"concurrency_limit": limits.runs_at_once, "concurrency_id": "sampler"}
    common = {name: p.sampling(name) for name in ("sampler", "steps", "guidance")}
    common["steps"] = f"steps of a fresh chain; from 1 to {limits.sample_steps}; the default is the model's own"
    p.endpoint(
        synthesize,
        {"required": p.REQUIRED, "excluded": p.EXCLUDED, "n": n, "model": p.MODEL, "seed": p.SEED}
        | {"keep_best": f"{KEEP_BEST}; from 1 to {limits.best_of}"}
        | {**common, "start": p.sampling("start"), "variety": p.sampling("variety")},
        "model; condition; support, the training images with this combination; images, as PNG data URIs; "
        "probabilities of every attribute for each image; log_p_condition, how sure the model is of what was asked; "
        "diverged, which chains diverged",
        **sampler,
    )
    p.endpoint(
        steer,
        {"walk": WALK, "n": n, "model": p.MODEL, "seed": p.SEED, **common, "lift": p.sampling("lift")},
        "model; conditions, one for each part; rows, for each part the same n chains as PNG data URIs; diverged",
        **sampler,
    )
    p.endpoint(
        predict,
        {"image": p.IMAGE, "model": p.MODEL, "face": p.FACE},
        "model; rows, for each attribute its probability p and, of the test pictures with such an answer, count, "
        "rate and the 95 % interval low to high, most unusual first; gate, how typical the picture is: its verdict "
        "(inside, unusual, unlike: do not trust the rows; null: this model cannot tell), the same as a sentence, and "
        "where it was measured distance, percentile and beyond; gate_auroc; faces, how many were found; note",
        concurrency_limit=2,
        concurrency_id="predict",
    )
    p.endpoint(
        edit,
        {"image": p.IMAGE, "required": f"attributes to add; {NONE}", "excluded": f"attributes to remove; {NONE}"}
        | {"variants": f"how many edited pictures; from 1 to {MOST_VARIANTS}"}
        | {"level": f"how much may change, as the noise level to lift the picture to; from 0.1 to {HIGHEST_LEVEL:g}"}
        | {"anchor": "how much of the picture stays in the places that change; from 0 to 1"}
        | {"model": p.MODEL, "face": p.FACE, "seed": p.SEED},
        "model; before, the part of the picture that the model sees, and images, the edited ones, as PNG data URIs; "
        "probabilities of every attribute for each image; note",
        **sampler,
    )


def synthesize(
    required: list[str],
    excluded: list[str] | None = None,
    n: int = 4,
    model: str | None = None,
    seed: int = 0,
    keep_best: int = 1,
    sampler: str | None = None,
    steps: int | None = None,
    guidance: float | None = None,
    start: str | None = None,
    variety: float | None = None,
) -> dict:
    """Synthesize pictures of a combination of attributes."""
    with p.refusing():
        limits = current().limits
        name, bundle = _model(model)
        condition = _condition(bundle, required, excluded)
        n, seed = _count(n), p.whole("seed", seed, 0, SEEDS)
        keep_best = p.whole("keep_best", keep_best, 1, limits.best_of)
        settings = _settings(bundle, sampler=sampler, steps=steps, guidance=guidance, start=start, variety=variety)
        samples = _sample(name, condition, n, seed, keep_best, settings)
    return {
        "model": name,
        "condition": str(condition),
        "support": bundle.support.count(condition),
        "images": as_uris(samples.images),
        "probabilities": _shares(bundle, samples.probabilities),
        "log_p_condition": [round(value, 4) for value in samples.log_p_condition.nan_to_num(-1e9).tolist()],
        "diverged": samples.diverged.tolist(),
    }


def steer(
    walk: str,
    n: int = 4,
    model: str | None = None,
    seed: int = 0,
    sampler: str | None = None,
    steps: int | None = None,
    guidance: float | None = None,
    lift: float | None = None,
) -> dict:
    """Steer the same chains from one condition to the next, as a visitor does who toggles attributes."""
    with p.refusing():
        name, bundle = _model(model)
        if not isinstance(walk, str) or len(walk) > LONGEST_WALK or walk.count(";") >= MOST_PARTS:
            most = f"{MOST_PARTS} parts and {LONGEST_WALK:,} letters"
            raise ValueError(f"walk is {short(walk)}; expected a text of at most {most}.")
        with p.named("walk"):
            conditions = parse_walk(walk, bundle)
        n, seed = _count(n), p.whole("seed", seed, 0, SEEDS)
        settings = _settings(bundle, sampler=sampler, steps=steps, guidance=guidance, lift=lift)
        walked = _walk(name, conditions, n, seed, settings)
    return {
        "model": name,
        "conditions": [str(condition) for condition in walked.conditions],
        "rows": [as_uris(row) for row in walked.images],
        "diverged": walked.diverged.tolist(),
    }


def predict(image: str, model: str | None = None, face: int = 1) -> dict:
    """Say which attributes a picture has, and how often test pictures with such an answer really had each."""
    with p.refusing():
        name, view, picture = _seen(image, model, face)
        prediction = predict_picture(current().catalog.bundle(name), view.stored)
    reading = prediction.reading
    return {
        "model": name,
        "rows": [answers.row_facts(row) for row in prediction.rows],
        "gate": (reading._asdict() if reading else {}) | answers.gate_words(prediction, view),
        "gate_auroc": prediction.gate_auroc,
        "faces": len(picture.faces or []),
        "note": view.note,
    }


def edit(
    image: str,
    required: list[str] | None = None,
    excluded: list[str] | None = None,
    variants: int = 4,
    level: float = editing.LEVEL,
    anchor: float = editing.ANCHOR,
    model: str | None = None,
    face: int = 1,
    seed: int = 0,
) -> dict:
    """Change attributes of a picture and keep the rest of it as it is."""
    with p.refusing():
        variants = p.whole("variants", variants, 1, MOST_VARIANTS)
        level, anchor = p.number("level", level, 0.1, HIGHEST_LEVEL), p.number("anchor", anchor, 0, 1)
        seed = p.whole("seed", seed, 0, SEEDS)
        if not (p.listed("required", required) or p.listed("excluded", excluded)):
            raise ValueError(f"required: {NO_CHANGE}")
        name, view, _ = _seen(image, model, face)
        bundle = current().catalog.bundle(name)
        condition = _condition(bundle, required, excluded)
        images, said = change(name, view.stored, condition, variants, seed, level, anchor)
    return {
        "model": name,
        "before": uploads.as_uri(view.stored),
        "images": as_uris(images),
        "probabilities": _shares(bundle, said),
        "note": view.note,
    }


def change(
    name: str, stored: Tensor, changes: Condition, variants: int, seed: int, level: float, anchor: float
) -> tuple[Tensor, Tensor]:
    """A picture, uint8 (3, S, S), with some attributes changed, and P(y = 1) of the results."""
    bundle = current().catalog.bundle(name)
    image = (stored.float()[None] + 0.5) / 256
    deadline = Deadline(current().limits.call_seconds)
    found = editing.edit(bundle, image, changes.tensor(1), variants, seed, level, anchor, deadline.check)[0]
    stored = (found * 255).round().byte().cpu()
    return found.cpu(), mean_prediction(bundle.model, stored, draws=2, mirror=bundle.data.flips)


change = gpu.on_gpu(change, duration=lambda name, stored, changes, variants, *rest: gpu.time_for(variants * 100))


def _sample(name: str, condition: Condition, n: int, seed: int, keep_best: int, settings: dict) -> Samples:
    deadline = Deadline(current().limits.call_seconds)
    bundle = current().catalog.bundle(name)
    return draw(bundle, condition, n, seed, keep_best, deadline, **settings)


def _walk(name: str, conditions: tuple[Condition, ...], n: int, seed: int, settings: dict) -> Walk:
    deadline = Deadline(current().limits.call_seconds)
    bundle = current().catalog.bundle(name)
    return walk_through(bundle, conditions, n, seed, deadline, **settings)


def _image_steps(name: str, condition: object, n: int, seed: int, *rest: object) -> float:
    """How long a GPU is needed: steps of one chain, times chains, times what comes on top."""
    keep_best = rest[0] if len(rest) > 1 else len(condition)
    steps = rest[-1].get("steps", current().catalog.bundle(name).sampling["steps"])
    return gpu.time_for(n * keep_best * steps)


_sample = gpu.on_gpu(_sample, duration=_image_steps)
_walk = gpu.on_gpu(_walk, duration=_image_steps)


def _model(value: object) -> tuple[str, Bundle]:
    catalog = current().catalog
    known = tuple(catalog.attributes())
    name = known[0] if value is None else p.choice("model", value, known)
    return name, catalog.bundle(name)


def _condition(bundle: Bundle, required: object, excluded: object) -> Condition:
    lists = {"required": p.listed("required", required), "excluded": p.listed("excluded", excluded)}
    for parameter, names in lists.items():
        with p.named(parameter):
            Condition.from_lists(bundle.names, names)
    with p.named("excluded"):
        return Condition.from_lists(bundle.names, **lists)


def _count(n: object) -> int:
    return p.whole("n", n, 1, min(MOST_IMAGES, current().limits.chains))


def _settings(bundle: Bundle, **values: object) -> dict:
    if values.get("steps") is not None:
        p.whole("steps", values["steps"], 1, current().limits.sample_steps)  # less than the table allows
    settings = p.given(bundle, **values)
    if settings.get("start") == "images":
        raise ValueError("start is 'images'; to begin at a picture, call /edit.")
    return settings


def _seen(image: object, model: object, face: object) -> tuple[str, uploads.View, uploads.Picture]:
    with p.named("image"):
        picture = uploads.from_base64(image)
    face = p.whole("face", face, 1, 100) - 1
    known = tuple(current().catalog.attributes())
    name = answers.choose(picture) if model is None else p.choice("model", model, known)
    with p.named("face"):
        return name, uploads.crop_for(picture, current().catalog.entry(name), face), picture


def as_uris(images: Tensor) -> list[str]:
    return [uploads.as_uri((image.clamp(0, 1) * 255).round().to(torch.uint8).cpu()) for image in images]


def _shares(bundle: Bundle, probabilities: Tensor) -> list[dict[str, float]]:
    return [dict(zip(bundle.names, (round(v, 4) for v in row), strict=True)) for row in probabilities.tolist()]
