"""The documented endpoint /synthesize: a condition in, images and probabilities out."""

from __future__ import annotations

import base64

import gradio as gr

from app import gpu
from app.chains import condition_for
from app.film import png, tile
from app.runtime import current
from app.settings import Settings, read
from jem_core.sampling import Samples, sample

MOST_IMAGES = 64


def build() -> None:
    limits = current().limits
    gr.api(synthesize, api_name="synthesize", concurrency_limit=limits.runs_at_once, concurrency_id="sampler")


def synthesize(
    wanted: list[str],
    unwanted: list[str] | None = None,
    n: int = 4,
    model: str | None = None,
    steps: int | None = None,
    sampler: str = "marginalizing",
    start: str = "conditional",
    seed: int = 0,
    keep_best: int = 1,
    guidance: float | None = None,
    variety: float | None = None,
) -> dict:
    """Synthesize images of a combination of attributes.

    Args:
        wanted: attributes to have, such as ["Eyeglasses", "Wearing_Hat"]; an empty list asks for nothing.
        unwanted: attributes not to have.
        n: how many images.
        model: the name of a model at hand; the default is the first.
        steps: Langevin steps; the default is the model's own.
        sampler: marginalizing or resampling.
        start: conditional, informed, uniform, buffer-match or buffer-any.
        seed: the same seed gives the same images.
        keep_best: draw this many times n and keep the n that the model is surest of.
        guidance: weight on log p(y_c | x); 1 is the paper, the default is the model's own.
        variety: how far apart the chains begin, 1 is as far as the data; the default is the model's own.

    Returns:
        images: PNG data URIs. probabilities: for each image, P(attribute | image). log_p_condition: how sure the model
        is of what was asked. diverged: which chains went astray. support: training images with this combination.
    """
    values = {"with": wanted or [], "without": unwanted or [], "chains": n, "model": model, "sampler": sampler}
    values |= {"start": start, "seed": seed, "guidance": guidance, "variety": variety}
    try:
        return _answer(values, steps, keep_best)
    except ValueError as error:
        raise gr.Error(str(error), print_exception=False) from error


def _answer(values: dict, steps: int | None, keep_best: int) -> dict:
    catalog, limits = current().catalog, current().limits
    settings = read(values, catalog.attributes(), min(MOST_IMAGES, limits.chains))
    if settings.start == "photo":
        raise ValueError("Start is 'photo'; choose one of conditional, informed, uniform, buffer-match, buffer-any.")
    bundle = catalog.bundle(settings.model)
    condition = condition_for(settings, bundle)
    steps = _bounded("Steps", bundle.sampling["steps"] if steps is None else steps, limits.sample_steps)
    keep_best = _bounded("Keep best", keep_best, limits.best_of)
    samples = _sample(settings, steps, keep_best)
    names = bundle.names
    return {
        "model": settings.model,
        "condition": str(condition),
        "support": bundle.support.count(condition),
        "images": ["data:image/png;base64," + base64.b64encode(png(tile(x[None]))).decode() for x in samples.images],
        "probabilities": [
            dict(zip(names, (round(p, 4) for p in row), strict=True)) for row in samples.probabilities.tolist()
        ],
        "log_p_condition": [round(value, 4) for value in samples.log_p_condition.nan_to_num(-1e9).tolist()],
        "diverged": samples.diverged.tolist(),
    }


def _sample(settings: Settings, steps: int, keep_best: int) -> Samples:
    bundle = current().catalog.bundle(settings.model)
    return sample(
        bundle,
        condition_for(settings, bundle),
        settings.chains,
        steps=steps,
        sampler=settings.sampler,
        start=settings.start,
        seed=settings.seed,
        keep_best=keep_best,
        **settings.langevin(),
    )


_sample = gpu.on_gpu(_sample, duration=lambda settings, steps, best: gpu.time_for(settings.chains * best * steps))


def _bounded(label: str, value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ValueError(f"{label} is {str(value)[:40]}; expected a whole number from 1 to {most}.")
    return value
