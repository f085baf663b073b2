"""From a condition to images in one call, and step by step."""

import copy

import pytest
import torch

from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.data.transforms import augment_chains
from jem_core.random import chain_generators, generator
from jem_core.samplers import SAMPLER_NAMES, LangevinSettings, Sampler
from jem_core.sampling import Samples, best_samples, run_chains, sample
from jem_core.starts import START_NAMES
from tests.conftest import TINY_NAMES

CONDITION = Condition.from_dict(TINY_NAMES, {"Red": True, "Striped": False})


@pytest.mark.parametrize("sampler", SAMPLER_NAMES)
@pytest.mark.parametrize("start", START_NAMES)
def test_one_call_from_condition_to_samples(tiny_bundle: Bundle, sampler: str, start: str) -> None:
    photo = torch.rand(1, 3, 32, 32, generator=generator(0))
    samples = sample(tiny_bundle, CONDITION, 3, steps=4, sampler=sampler, start=start, seed=1, images=photo)
    assert samples.images.shape == (3, 3, 32, 32)
    assert samples.images.min() >= 0
    assert samples.images.max() <= 1
    assert CONDITION.matches(samples.labels).all()
    # The figures are those of the very images that are returned.
    torch.testing.assert_close(samples.probabilities, tiny_bundle.model.predict(samples.images))
    log_p = samples.probabilities[:, 0].log() + (1 - samples.probabilities[:, 2]).log()
    torch.testing.assert_close(samples.log_p_condition, log_p)
    assert samples.energy.shape == samples.diverged.shape == (3,)
    again = sample(tiny_bundle, CONDITION, 3, steps=4, sampler=sampler, start=start, seed=1, images=photo)
    assert torch.equal(samples.images, again.images)
    assert torch.equal(samples.labels, again.labels)


def test_more_samples_do_not_change_the_first(tiny_bundle: Bundle) -> None:
    two, five = (sample(tiny_bundle, CONDITION, n, seed=3) for n in (2, 5))
    torch.testing.assert_close(two.images, five.images[:2], atol=1e-5, rtol=0)
    other = sample(tiny_bundle, CONDITION, 2, seed=4)
    assert not torch.equal(two.images, other.images)


def test_the_models_own_settings_are_the_default(tiny_bundle: Bundle) -> None:
    seen = []
    sample(tiny_bundle, CONDITION, 1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 5) for i in range(1, 6)]  # the bundle says 5 steps
    default = sample(tiny_bundle, CONDITION, 1, steps=5)
    assert torch.equal(default.images, sample(tiny_bundle, CONDITION, 1, grad_coef=1.0, preconditioner=0.0).images)
    for change in ({"grad_coef": 0.5}, {"preconditioner": 5.0}, {"noise_std": 0.1}, {"grad_clamp": 1e-6}):
        assert not torch.equal(default.images, sample(tiny_bundle, CONDITION, 1, **change).images)


def test_no_steps_give_the_start(tiny_bundle: Bundle) -> None:
    photo = torch.rand(1, 3, 32, 32, generator=generator(0))
    samples = sample(tiny_bundle, CONDITION, 1, steps=0, start="images", images=photo)
    assert torch.equal(samples.images, photo)


def test_the_best_of_ten_have_the_highest_log_p(tiny_bundle: Bundle) -> None:
    all_of_them = sample(tiny_bundle, CONDITION, 20, steps=3)
    best = sample(tiny_bundle, CONDITION, 2, steps=3, keep_best=10)
    top = all_of_them.log_p_condition.sort(descending=True).values[:2]
    torch.testing.assert_close(best.log_p_condition, top, atol=1e-5, rtol=0)
    assert best.images.shape == (2, 3, 32, 32)
    torch.testing.assert_close(best.probabilities, tiny_bundle.model.predict(best.images))


def test_diverged_samples_come_last() -> None:
    log_p = torch.tensor([-1.0, -0.1, -3.0, torch.nan])
    samples = Samples(
        images=torch.arange(4.0).view(4, 1, 1, 1),
        labels=torch.zeros(4, 1),
        probabilities=torch.zeros(4, 1),
        log_p_condition=log_p,
        energy=torch.zeros(4),
        diverged=torch.tensor([False, True, False, False]),
    )
    assert best_samples(samples, 2).images.flatten().tolist() == [0, 2]
    assert best_samples(samples, 3).images.flatten().tolist() == [0, 2, 1]
    assert best_samples(samples, 4) is samples


def chains(bundle: Bundle, seed: int = 0, augment_every: int = 0, steps: int | None = None):
    sampler, randomness = Sampler("resampling", bundle.model, LangevinSettings()), chain_generators(seed, 2)
    state = sampler.init(torch.full((2, 3, 32, 32), 0.5), CONDITION.tensor(2), randomness)
    return run_chains(sampler, state, randomness, steps, augment_every)


def test_the_generator_yields_every_step(tiny_bundle: Bundle) -> None:
    states = [state for state, _ in chains(tiny_bundle, steps=4)]
    assert [state.step for state in states] == [1, 2, 3, 4]
    endless = chains(tiny_bundle)
    for expected in states:
        state, info = next(endless)
        assert torch.equal(state.x, expected.x)
        assert info.energy.shape == (2,)


def test_a_running_chain_can_be_steered(tiny_bundle: Bundle) -> None:
    plain, steered = chains(tiny_bundle), chains(tiny_bundle)
    a, b = next(plain)[0], next(steered)[0]
    assert torch.equal(a.x, b.x)
    other = Condition.from_dict(TINY_NAMES, {"Red": False}).tensor(2)
    after, _ = steered.send(b._replace(condition=other))
    assert after.step == 2
    assert (after.y[:, 0] == 0).all()
    assert (next(plain)[0].y[:, 0] == 1).all()
    assert not torch.equal(next(plain)[0].x, next(steered)[0].x)


def test_chains_are_augmented_at_every_nth_step(tiny_bundle: Bundle) -> None:
    """Steps 1 and 2 are as without; before step 3 chains are augmented with their own generators."""
    with_it = [state for state, _ in chains(tiny_bundle, augment_every=2, steps=3)]
    without = [state for state, _ in chains(tiny_bundle, steps=3)]
    assert torch.equal(with_it[1].x, without[1].x)
    assert not torch.equal(with_it[2].x, without[2].x)
    sampler, randomness = Sampler("resampling", tiny_bundle.model), chain_generators(0, 2)
    state = sampler.init(torch.full((2, 3, 32, 32), 0.5), CONDITION.tensor(2), randomness)
    for _ in range(2):
        state, _ = sampler.step(state, randomness)
    state, _ = sampler.step(state._replace(x=augment_chains(state.x, randomness)), randomness)
    assert torch.equal(state.x, with_it[2].x)
    once = sample(tiny_bundle, CONDITION, 2, steps=3, augment_every=2)
    assert not torch.equal(once.images, sample(tiny_bundle, CONDITION, 2, steps=3).images)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, "n is 0; expected a whole number of at least 1"),
        ({"n": 2.5}, r"n is 2\.5"),
        ({"steps": -1}, "steps is -1"),
        ({"steps": 1.5}, r"steps is 1\.5"),
        ({"keep_best": 0}, "keep_best is 0"),
        ({"sampler": "gibbs"}, "no sampler 'gibbs'"),
        ({"start": "zeros"}, "no start 'zeros'"),
        ({"temperature": 1.0}, "no sampling setting 'temperature'; choose one of steps, grad_coef"),
        ({"grad_coef": -1.0}, r"grad_coef is -1\.0"),
        ({"preconditioner": -1.0}, r"strength is -1\.0"),
        ({"condition": Condition.free(("Red",))}, r"over \('Red',\); the model knows"),
    ],
)
def test_a_bad_request_is_refused(tiny_bundle: Bundle, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sample(tiny_bundle, **({"condition": CONDITION, "n": 1} | changes))


def test_a_model_that_diverged_in_training_is_refused(tiny_bundle: Bundle) -> None:
    sick = copy.deepcopy(tiny_bundle)
    sick.model.mlp[0].bias.data[3] = torch.inf
    with pytest.raises(ValueError, match=r"mlp\.0\.bias holds NaN or infinite"):
        sample(sick, CONDITION, 1)
