"""Chains from their start to samples: what they cost, that seeds fix them, and what steering does and leaves alone."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from jem_core.bundle import Bundle
from jem_core.chains import HIGHEST, Chains, join_chains, sample
from jem_core.condition import FREE, Condition
from jem_core.networks.residual import ResidualModel
from jem_core.walks import arrive

ASKED = ("Red", "Bright")


def condition(bundle: Bundle, *required: str) -> Condition:
    return Condition.from_lists(bundle.names, required)


def begun(bundle: Bundle, n: int = 3, **changes: object) -> Chains:
    return bundle.chains(condition(bundle, *ASKED), n, seed=1, precision="float32", **changes)


class Counted(ResidualModel):
    """Counts evaluations and their gradients."""

    forwards = backwards = 0

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        type(self).forwards += 1
        logits = super().forward(x, sigma)
        if logits.requires_grad:
            logits.register_hook(self.count)
        return logits

    def count(self, grad: Tensor) -> None:
        type(self).backwards += 1


@pytest.mark.parametrize("sampler", ["resampling", "marginalizing"])
def test_a_step_costs_one_forward_and_one_backward_and_a_lift_none(tiny_levels: Bundle, sampler: str) -> None:
    chains = begun(tiny_levels, sampler=sampler)
    before = tiny_levels.model.__class__
    tiny_levels.model.__class__ = Counted
    try:
        Counted.forwards = Counted.backwards = 0
        steps = len(chains.memory.plan)
        arrive(chains)
        assert (Counted.forwards, Counted.backwards) == (steps, steps)
        chains.steer(condition(tiny_levels, "Striped"))
        assert (Counted.forwards, Counted.backwards) == (steps, steps)
    finally:
        tiny_levels.model.__class__ = before


def test_chains_begin_at_their_level_and_end_as_pictures(tiny_levels: Bundle) -> None:
    chains = begun(tiny_levels, start_level=2.5)
    assert chains.state.level == 2.5
    assert chains.state.x.std() > 1
    levels = [chains.state.level]
    while not chains.finished:
        chains.advance()
        levels.append(chains.state.level)
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] == 0
    torch.testing.assert_close(tiny_levels.model.encode(chains.images()), chains.state.x)
    samples = chains.finish()
    assert torch.equal(samples.images, chains.images())
    assert (samples.labels[:, [tiny_levels.names.index(name) for name in ASKED]] == 1).all()
    with pytest.raises(ValueError, match="have arrived"):
        chains.advance()


def test_pure_noise_begins_higher_and_takes_more_steps(tiny_levels: Bundle) -> None:
    noise, usual = begun(tiny_levels, start="noise"), begun(tiny_levels)
    assert noise.state.level == HIGHEST
    assert noise.state.x.std().item() == pytest.approx(HIGHEST, rel=0.05)
    assert len(noise.memory.plan) > len(usual.memory.plan) == tiny_levels.sampling["steps"]


@pytest.mark.parametrize("sampler", ["resampling", "marginalizing"])
def test_one_seed_gives_the_same_bits_through_three_toggles(
    tiny_levels: Bundle, sampler: str, one_thread: None
) -> None:
    toggles = [("Striped",), ("Striped", "Left"), ("Left",)]

    def walk() -> list[Tensor]:
        chains, found = begun(tiny_levels, sampler=sampler), []
        arrive(chains)
        found.append(chains.state.x.clone())
        for names in toggles:
            chains.steer(condition(tiny_levels, *names))
            arrive(chains)
            found.append(chains.state.x.clone())
        return found

    first, second = walk(), walk()
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(not torch.equal(a, b) for a, b in pairwise(first))


def test_many_chains_are_as_many_times_one_chain(tiny_levels: Bundle) -> None:
    def end(**which: object) -> Tensor:
        chains = tiny_levels.chains(condition(tiny_levels, *ASKED), seed=1, precision="float32", **which)
        arrive(chains)
        chains.steer(condition(tiny_levels, "Left"))
        arrive(chains)
        return chains.state.x

    together = end(n=16)
    for row in (0, 7, 15):
        alone = end(n=1, rows=[row])
        torch.testing.assert_close(alone[0], together[row], atol=1e-5, rtol=0)


def test_joined_chains_walk_as_they_would_alone(tiny_levels: Bundle) -> None:
    parts = [
        tiny_levels.chains(condition(tiny_levels, name), 2, seed=i, precision="float32") for i, name in enumerate(ASKED)
    ]
    alone = [sample(tiny_levels, condition(tiny_levels, name), 2, seed=i) for i, name in enumerate(ASKED)]
    joined = join_chains(parts)
    arrive(joined)
    torch.testing.assert_close(joined.images(), torch.cat([one.images for one in alone]), atol=2e-2, rtol=0)
    parts[0].advance()
    with pytest.raises(ValueError, match="different ways"):
        join_chains(parts)


def test_a_toggle_changes_nothing_that_came_before_it(tiny_levels: Bundle, one_thread: None) -> None:
    plain, steered = begun(tiny_levels), begun(tiny_levels)
    past = []
    for _ in range(3):
        plain.advance()
        steered.advance()
        past.append(steered.state.x.clone())
    kept = [x.clone() for x in past]
    steered.steer(condition(tiny_levels, "Framed"))
    steered.advance()
    assert all(torch.equal(a, b) for a, b in zip(past, kept, strict=True))
    assert torch.equal(plain.state.x, past[-1])


def test_steering_shifts_by_the_means_and_lifts_with_each_chains_own_noise(tiny_levels: Bundle) -> None:
    chains = begun(tiny_levels, lift=2.0)
    arrive(chains)
    before, old = chains.state.x.clone(), chains.state.condition
    new = condition(tiny_levels, "Striped")
    chains.steer(new)
    gaussian = tiny_levels.gaussian
    shift = 2 * (gaussian.mean_image(new.tensor(3)) - gaussian.mean_image(old))
    noise = (chains.state.x - before - shift) / 2.0
    assert noise.std().item() == pytest.approx(1, abs=0.05)
    assert chains.state.level == 2.0
    arrive(chains)
    rest = chains.state.x.clone()
    chains.steer(condition(tiny_levels, *ASKED))
    again = (chains.state.x - rest + shift) / 2.0
    assert not torch.allclose(again, noise, atol=0.1)  # new noise at every toggle: the same twice would add up
    assert not torch.allclose(noise[0], noise[1], atol=0.1)  # and another for each chain


def test_a_toggle_on_the_way_down_goes_on_from_where_the_chains_are(tiny_levels: Bundle) -> None:
    chains = begun(tiny_levels, lift=0.5, start_level=4.0)
    chains.advance()
    level = chains.state.level
    assert level > 0.5
    chains.steer(condition(tiny_levels, "Left"))
    assert chains.state.level == level
    arrive(chains)
    assert chains.state.level == 0


def test_wandering_chains_rise_and_come_down_for_ever(tiny_levels: Bundle) -> None:
    chains = begun(tiny_levels, wander_level=0.8)
    chains.wander()
    levels = []
    for _ in range(60):
        chains.advance()
        levels.append(chains.state.level)
    assert not chains.finished
    assert levels.count(0.0) >= 4  # every way down ends at pictures
    assert max(levels[-20:]) < 0.8  # a step leads down from the level that the chains were lifted to
    chains.rest()
    arrive(chains)
    assert chains.finished
    assert chains.state.level == 0


def test_frozen_chains_stay_while_the_others_go_on(tiny_levels: Bundle) -> None:
    chains = begun(tiny_levels)
    arrive(chains)
    before = chains.images().clone()
    chains.freeze([1])
    chains.steer(condition(tiny_levels, "Framed"))
    chains.advance()
    assert torch.equal(chains.images()[1], before[1])
    arrive(chains)
    assert torch.equal(chains.images()[1], before[1])
    assert not torch.equal(chains.images()[0], before[0])
    chains.freeze([])
    chains.steer(condition(tiny_levels, "Left"))
    arrive(chains)
    assert not torch.equal(chains.images()[1], before[1])
    with pytest.raises(ValueError, match="There is no chain 9; these are 3"):
        chains.freeze([9])


def test_a_chain_that_is_frozen_on_its_way_stops_at_what_it_was_heading_for(tiny_levels: Bundle) -> None:
    chains = begun(tiny_levels)
    chains.advance()
    heading = chains.images().clone()
    chains.freeze([0])
    arrive(chains)
    assert torch.equal(chains.images()[0], heading[0])


def test_a_diverged_chain_begins_anew_at_the_level_of_the_others(tiny_levels: Bundle) -> None:
    chains = begun(tiny_levels)
    chains.advance()
    chains.memory.state.x[1] = torch.nan
    info = chains.advance()
    assert info.diverged.tolist() == [False, True, False]
    kept = chains.state.x[[0, 2]].clone()
    chains.renew(info.diverged)
    assert chains.state.x.isfinite().all()
    assert torch.equal(chains.state.x[[0, 2]], kept)
    assert chains.state.x[1].std().item() == pytest.approx(chains.state.x[0].std().item(), rel=0.5)


def test_what_a_chain_shows(tiny_levels: Bundle) -> None:
    chains = begun(tiny_levels)
    info = chains.advance()
    model = tiny_levels.model
    assert torch.equal(chains.images(heading=True), model.decode(info.denoised))
    assert torch.equal(chains.images(heading=False), model.decode(chains.state.x))
    assert info.denoised.abs().max() <= 1


def test_strengths_weigh_attributes_one_by_one(tiny_levels: Bundle) -> None:
    """Strength 1 everywhere is the common guidance, and 0 leaves what is asked to the density alone."""
    ones = torch.ones(len(tiny_levels.names))
    plain = begun(tiny_levels, guidance=3.0).advance()
    same = begun(tiny_levels, guidance=3.0, strengths=ones).advance()
    torch.testing.assert_close(same.denoised, plain.denoised)
    weak = begun(tiny_levels, guidance=3.0, strengths=ones / 3).advance()
    unguided = begun(tiny_levels, guidance=1.0).advance()
    torch.testing.assert_close(weak.denoised, unguided.denoised)
    assert not torch.allclose(weak.denoised, plain.denoised)


def test_guidance_acts_within_its_range_of_levels(tiny_levels: Bundle) -> None:
    inside = begun(tiny_levels, guidance=5.0, guidance_from=1.0, guidance_to=10.0).advance()
    everywhere = begun(tiny_levels, guidance=5.0).advance()
    below = begun(tiny_levels, guidance=5.0, guidance_from=0.0, guidance_to=1.0).advance()
    unguided = begun(tiny_levels, guidance=1.0).advance()
    assert torch.equal(inside.denoised, everywhere.denoised)
    assert torch.equal(below.denoised, unguided.denoised)


def test_given_images_are_where_chains_begin(tiny_levels: Bundle) -> None:
    image = torch.rand(1, 3, 32, 32)
    near = begun(tiny_levels, n=2, images=image, start="images", start_level=0.05)
    arrive(near)
    far = begun(tiny_levels, n=2, images=image, start="images", start_level=3.0)
    arrive(far)
    assert (near.images() - image).abs().mean() < (far.images() - image).abs().mean()
    assert (near.images() - image).abs().mean() < 0.05


def test_chains_without_levels_walk_on_under_another_condition(tiny_bundle: Bundle) -> None:
    chains = begun(tiny_bundle)
    arrive(chains)
    before = chains.state.x.clone()
    chains.steer(condition(tiny_bundle, "Left"))
    assert torch.equal(chains.state.x, before)
    assert len(chains.memory.plan) == tiny_bundle.sampling["steps"]
    arrive(chains)
    assert chains.state.step == 2 * tiny_bundle.sampling["steps"]
    with pytest.raises(ValueError, match="this model knows none"):
        chains.wander()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"n": 0}, "n is 0; expected a whole number of at least 1"),
        ({"start": "images"}, "no image was given"),
        ({"start": "buffer-any"}, "does not have; choose one of conditional, informed, noise, images"),
        ({"start_level": 0}, "start_level is 0; expected a number from 0.02 to 40"),
        ({"lift": float("inf")}, "lift is inf; expected a number from"),
        ({"lift": float("nan")}, "lift is nan"),
        ({"grad_coef": 1.0}, "grad_coef means nothing to a model with noise levels"),
        ({"speed": 3}, "There is no sampling setting 'speed'; choose one of sampler, start"),
        ({"descent": "up"}, "descent is 'up'; choose one of ancestral, deterministic"),
        ({"sampler": "gibbs"}, "sampler is 'gibbs'; choose one of resampling, marginalizing"),
    ],
)
def test_bad_input_gets_a_sentence(tiny_levels: Bundle, changes: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tiny_levels.chains(condition(tiny_levels, "Red"), **({"n": 2} | changes))


def test_a_condition_of_another_model_loses_nothing(tiny_levels: Bundle) -> None:
    other = Condition.from_lists(("Nose", "Hat"), ["Hat"])
    with pytest.raises(ValueError, match=r"The condition is over \('Nose', 'Hat'\); the model knows"):
        tiny_levels.chains(other, 2)
    chains = begun(tiny_levels)
    chains.advance()
    before = chains.state
    with pytest.raises(ValueError, match="The condition is over"):
        chains.steer(other)
    assert chains.state is before
    assert chains.state.condition[0, tiny_levels.names.index("Left")] == FREE
