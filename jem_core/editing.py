"""Edit a given picture: the same picture with one attribute changed.

The picture's own way down is known: the picture under one and the same noise, less of it at every level. The step
between two levels leaves a residual that the model did not expect: what makes this picture this one. A second chain
begins at the same noisy picture, shifted by what the changed attribute does to pictures on average, comes down under
the changed condition, and takes the same residuals along. Without a change it ends at the picture itself, up to
rounding; with one it ends at the same picture with the change (as inversion does for diffusion models). Outside the
place of the change, a tenth of what differs from the picture goes at every step: hair turns blond, the face stays.
Only what changes is guided: the picture's own residuals keep the rest, and guidance towards what the picture has
already works against the change.

Tried beside it on drawn avatars: putting the picture itself there at every step, and a term in the target that keeps
chains near the picture. The first loses the change half of the time, the second always. Without either, edits are as
often right, but three times as far from the picture outside the change. Fresh noise at every level, and ancestral
steps, burn faces where chain and picture part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from jem_core.bundle import Bundle
from jem_core.chains import way_down
from jem_core.condition import FREE, WITH, WITHOUT, Condition
from jem_core.data.transforms import gaussian_blur
from jem_core.model import check_images, check_labels
from jem_core.random import chain_generators, normal
from jem_core.samplers import ChainState
from jem_core.settings import BY_KEY

LEVEL = 4.0  # the noise level that a picture is lifted to: how much may change
ANCHOR = 0.7  # the share of the residuals that is kept where the picture changes; elsewhere they are kept whole
PULLS = (2.0, 5.0)  # multiples of the model's guidance on what changes: an edit is drawn with each, the nearest kept
EDIT = 3  # stream of random numbers
CHANGE = (0.1, 0.3)  # mean difference of two denoised pictures in [-1, 1]: from none to a full change of a place
BLUR = 2.0  # pixels at 64: changes have soft borders
SHIFT = 1.0  # of what the change does on average, this much is added at the start
SHIFTED = (0.2, 0.5)  # of the largest mean change of a place: from none of the shift to all of it
INSIDE = (0.03, 0.2)  # the same: from outside the change to inside
STAYS = 0.9  # of a difference from the picture outside the change, at every step


@torch.no_grad()
def seen_in(bundle: Bundle, images: Tensor) -> Tensor:
    """The labels that the model gives to images (n, 3, S, S) in [0, 1]. (n, K)."""
    check_images(images, bundle.model.image_size)
    return (_probabilities(bundle, images.to(bundle.device)) > 0.5).long()


@torch.no_grad()
def _probabilities(bundle: Bundle, images: Tensor) -> Tensor:
    """P(y_k = 1 | x), over the mirror image too where the data allow it, as `jem_core.predict` looks at a picture."""
    p = bundle.model.predict(images)
    return (p + bundle.model.predict(images.flip(-1))) / 2 if bundle.data.flips else p


def asked_of(bundle: Bundle, seen: Tensor, changes: Tensor) -> Tensor:
    """All that is asked of an edited picture: the changes, and everything else as it was seen (n, K).

    What cannot be true beside a required attribute goes: brown hair when blond hair is asked for. What it takes the
    place of is left free, and so is what went along with it where training never saw the rest: a bald head with bangs
    needs some colour of hair.
    """
    check_labels(changes, changes != FREE, tuple(seen.shape), "the changes")
    asked = torch.where(changes == FREE, seen, changes)
    for row, change in zip(asked, changes, strict=True):
        for k in (change != FREE).nonzero()[:, 0].tolist():
            if change[k] == WITH:
                replaced = [bundle.names.index(name) for name in bundle.data.instead_of(bundle.names[k])]
                row[[i for i in replaced if row[i] == WITH]] = FREE
                row[_rivals(bundle, [k])] = WITHOUT
            _leave_free(bundle, row, k)
    return torch.where(changes == FREE, asked, changes)


def _rivals(bundle: Bundle, labels: Sequence[int]) -> list[int]:
    """The labels that cannot be true beside one of these."""
    names = (rival for k in labels for rival in bundle.data.rivals(bundle.names[k]))
    return sorted({bundle.names.index(name) for name in names})


def _leave_free(bundle: Bundle, asked: Tensor, k: int) -> None:
    """Free the rivals of an attribute's rivals, where no training image is as they are asked to be together."""
    near = _rivals(bundle, [k])
    around = sorted({k, *near, *_rivals(bundle, near)})
    values = {bundle.names[i]: bool(asked[i]) for i in around if asked[i] != FREE}
    if near and not bundle.support.count(Condition.from_dict(bundle.names, values)):
        fixed = {k, *near} if asked[k] == WITH else {k}
        asked[[i for i in around if i not in fixed and asked[i] == WITHOUT]] = FREE


def _filled(bundle: Bundle, asked: Tensor, changes: Tensor) -> Tensor:
    """What is left free as in the training labels that have the change and agree best with the rest, the more common
    of two: hair of no colour in particular is of many colours at once."""
    rows, counts = torch.from_numpy(bundle.support.rows).long(), torch.from_numpy(bundle.support.counts)
    filled = asked.clone()
    for row, change in zip(filled, changes, strict=True):
        wanted, known = row.cpu(), (row != FREE).cpu()
        fits = ((rows == wanted) | (change == FREE).cpu()).all(dim=1) & (rows != FREE).all(dim=1)
        if known.all() or not fits.any():
            continue
        agree = ((rows == wanted) & known).sum(dim=1) + counts / (counts.sum() + 1)
        row[~known] = rows[agree.masked_fill(~fits, -1).argmax(), ~known].to(row.device)
    return filled


def edit(
    bundle: Bundle,
    images: Tensor,
    changes: Tensor,
    variants: int = 1,
    seed: int = 0,
    level: float = LEVEL,
    anchor: float = ANCHOR,
    progress: Callable[[], None] | None = None,
    **settings: object,
) -> Tensor:
    """Images (n, 3, S, S) in [0, 1] with these attributes changed (n, K: 1 with, 0 without, -1 as it is).

    `level` says how much may change, `anchor` (0 to 1) how much of the picture stays in the places that do. More are
    drawn than asked for, and the nearest that have the change are kept. Returns (n, variants, 3, S, S), the same for
    the same picture and seed. A model without noise levels starts its chains at the picture and has neither level nor
    anchor. `progress` is called before every step.
    """
    progress = progress or (lambda: None)
    if not isinstance(variants, int) or variants < 1:
        raise ValueError(f"variants is {variants!r}; expected a whole number of at least 1.")
    if not 0 <= anchor <= 1:
        raise ValueError(f"anchor is {anchor!r}; expected a number from 0 to 1.")
    level = BY_KEY["start_level"].check(level)
    images, changes = images.to(bundle.device), changes.to(bundle.device)
    seen = seen_in(bundle, images)
    asked = _filled(bundle, asked_of(bundle, seen, changes), changes)
    drawn = variants * len(PULLS) if bundle.levels else variants
    parts = (value.repeat_interleave(drawn, dim=0) for value in (images, seen, asked))
    rows = list(range(drawn)) * len(images)
    if bundle.levels:
        randomness = chain_generators(seed, rows, bundle.device, EDIT)
        # A margin would push further than the change needs, and the picture's other attributes with it.
        settings = {"descent": "deterministic", "margin": 0.0} | settings | {"start": "images"}
        way = _Way(bundle, bundle.sampling_with(settings), level, anchor, randomness, progress)
        pulls = torch.tensor(PULLS, device=bundle.device).repeat(len(images) * variants)
        start, known, wanted = parts
        edited = way.come_down(start, known, wanted, pulls)
        return _nearest(bundle, images, edited.unflatten(0, (-1, drawn)), changes, variants)
    start, _, wanted = parts
    chains = bundle.chains(wanted, len(start), seed, start, rows, **settings | {"start": "images"})
    while not chains.finished:
        progress()
        chains.advance()
    return chains.images().unflatten(0, (-1, drawn))


def _nearest(bundle: Bundle, images: Tensor, edited: Tensor, changes: Tensor, count: int) -> Tensor:
    """Of several edits of each picture those that have the change, as the model sees it, and of them the nearest.

    Not the surest: what convinces a model most is rarely what looks best. Those that lack the change come last, and
    of them the surest first.
    """
    sure = _probabilities(bundle, edited.flatten(0, 1)).unflatten(0, edited.shape[:2])
    wanted = changes[:, None]
    lacking = torch.where(wanted == FREE, 0.0, (wanted - sure).abs()).amax(dim=-1)  # of the change, 0 to 1
    distance = (edited - images[:, None]).abs().mean(dim=(2, 3, 4))  # below 1
    order = torch.where(lacking < 0.5, distance, 1 + lacking).argsort(dim=1, stable=True)[:, :count]
    return edited.gather(1, order.view(*order.shape, 1, 1, 1).expand(-1, -1, *edited.shape[2:]))


@dataclass(frozen=True)
class _Way:
    """The way down of a picture and of its edited twin."""

    bundle: Bundle
    settings: dict
    level: float
    anchor: float
    randomness: list[torch.Generator]
    progress: Callable[[], None]

    def come_down(self, images: Tensor, seen: Tensor, asked: Tensor, pulls: Tensor) -> Tensor:
        """Both chains side by side, from the level to a picture; the first one's end is known."""
        bundle, gaussian = self.bundle, self.bundle.start.gaussian
        changed = (asked != seen) & (asked != FREE)
        pull = torch.where(changed, self.settings["guidance"] * pulls[:, None], 1.0)
        weights = {"guidance": 1.0, "strengths": torch.cat([torch.ones_like(pull), pull])}
        kernel = bundle.sampler(self.settings | weights)
        labels, clean = torch.cat([seen, asked]), bundle.model.encode(images)
        y = torch.cat([seen, torch.where(asked == FREE, seen, asked)])
        noise = self._noise(clean)
        own = clean + self.level * noise
        change = gaussian.mean_image(asked) - gaussian.mean_image(seen)
        other = own + 2 * SHIFT * change * _belongs(change, SHIFTED)  # blond hair without the lighter wall it often has
        stays = STAYS + (1 - STAYS) * _belongs(change, INSIDE)
        for step in way_down(bundle, self.settings, self.level):
            self.progress()
            after = clean + step.to * noise
            state = ChainState(torch.cat([own, other]), y, labels, 0, step.sigma)
            quiet = step._replace(noise_std=0.0)
            moved, info = kernel.step(state, quiet, [*self.randomness, *self.randomness])
            expected, moved_other = moved.x.chunk(2)
            residual = after - expected
            if self.anchor < 1:
                kept = 1 - (1 - self.anchor) * _changed(*info.denoised.chunk(2))
                fresh = (1 - kept.square()).sqrt() * step.noise_std  # of ancestral steps
                residual = kept * residual + fresh * self._noise(clean)
            own, other = after, after + stays * (moved_other + residual - after)
        return bundle.model.decode(other)

    def _noise(self, like: Tensor) -> Tensor:
        return normal(like.shape, self.randomness, like.device)


def _belongs(change: Tensor, between: tuple[float, float]) -> Tensor:
    """Where a mean change takes place, from 0 to 1, as its strength goes between two shares of the largest. The borders
    are soft. (n, 1, S, S)."""
    radius = change.new_full((len(change),), BLUR * change.shape[-1] / 64)
    strength = gaussian_blur(change.abs().mean(dim=1, keepdim=True), radius)
    low, high = between
    share = strength / strength.amax(dim=(2, 3), keepdim=True).clamp(min=1e-6)
    return ((share - low) / (high - low)).clamp(0, 1)


def _changed(before: Tensor, after: Tensor) -> Tensor:
    """Where two pictures differ, from 0 to 1 with soft borders. (n, 1, S, S)."""
    radius = before.new_full((len(before),), BLUR * before.shape[-1] / 64)
    low, high = CHANGE
    difference = gaussian_blur((after - before).abs().mean(dim=1, keepdim=True), radius)
    return gaussian_blur(((difference - low) / (high - low)).clamp(0, 1), radius)
