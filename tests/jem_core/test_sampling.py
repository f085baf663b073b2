"""From a condition to images in one call, with and without noise levels; and what happens on the way."""

import copy

import pytest
import torch

from jem_core.bundle import Bundle
from jem_core.chains import Chains, sample
from jem_core.condition import Condition
from jem_core.data.transforms import augment_chains
from jem_core.networks.residual import ResidualModel
from jem_core.random import chain_generators, generator
from jem_core.samplers import SAMPLERS
from jem_core.samples import Samples, best
from jem_core.schedules import constant
from jem_core.settings import starts_for
from tests.conftest import TINY_NAMES

CONDITION = Condition.from_dict(TINY_NAMES, {"Red": True, "Striped": False})
STARTS = [(kind, start) for kind in ("tiny_bundle", "tiny_levels") for start in starts_for(kind == "tiny_levels")]


@pytest.fixture(params=["tiny_bundle", "tiny_levels"])
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return request.getfixturevalue(request.param)


def photo() -> torch.Tensor:
    return torch.rand(1, 3, 32, 32, generator=generator(0))


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(("kind", "start"), STARTS, ids=[f"{kind}-{start}" for kind, start in STARTS])
def test_one_call_from_condition_to_samples(
    request: pytest.FixtureRequest, kind: str, start: str, sampler: str
) -> None:
    bundle = request.getfixturevalue(kind)
    options = {"steps": 4, "sampler": sampler, "start": start, "seed": 1, "images": photo()}
    samples = sample(bundle, CONDITION, 3, **options)
    assert samples.images.shape == (3, 3, 32, 32)
    assert samples.images.min() >= 0
    assert samples.images.max() <= 1
    assert CONDITION.matches(samples.labels).all()
    # The figures are those of the very images that are returned.
    torch.testing.assert_close(samples.probabilities, bundle.model.predict(samples.images), atol=1e-5, rtol=1e-4)
    log_p = samples.probabilities[:, 0].log() + (1 - samples.probabilities[:, 2]).log()
    torch.testing.assert_close(samples.log_p_condition, log_p, atol=1e-4, rtol=1e-4)
    assert samples.energy.shape == samples.diverged.shape == (3,)
    assert not samples.diverged.any()
    again = sample(bundle, CONDITION, 3, **options)
    assert torch.equal(samples.images, again.images)
    assert torch.equal(samples.labels, again.labels)


def test_more_samples_do_not_change_the_first(bundle: Bundle) -> None:
    two, five = (sample(bundle, CONDITION, n, seed=3, precision="float32") for n in (2, 5))
    torch.testing.assert_close(two.images, five.images[:2], atol=1e-5, rtol=0)
    other = sample(bundle, CONDITION, 2, seed=4)
    assert not torch.equal(two.images, other.images)


def test_the_models_own_settings_are_the_default(tiny_bundle: Bundle) -> None:
    seen = []
    sample(tiny_bundle, CONDITION, 1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 5) for i in range(1, 6)]  # the bundle says 5 steps
    default = sample(tiny_bundle, CONDITION, 1, steps=5)
    assert torch.equal(default.images, sample(tiny_bundle, CONDITION, 1, grad_coef=1.0, preconditioner=0.0).images)
    for change in ({"grad_coef": 0.5}, {"preconditioner": 5.0}, {"noise_std": 0.1}, {"grad_clamp": 1e-6}):
        assert not torch.equal(default.images, sample(tiny_bundle, CONDITION, 1, **change).images)


def test_with_levels_too(tiny_levels: Bundle) -> None:
    seen = []
    default = sample(tiny_levels, CONDITION, 1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 6) for i in range(1, 7)]
    assert torch.equal(default.images, sample(tiny_levels, CONDITION, 1, guidance=2.0, start_level=4.0).images)
    for change in (
        {"guidance": 8.0},
        {"guidance_from": 1.0},
        {"guidance_to": 0.1},
        {"start_level": 3.0},
        {"variety": 0.5},
        {"descent": "deterministic"},
        {"steps": 7},
    ):
        assert not torch.equal(default.images, sample(tiny_levels, CONDITION, 1, **change).images), change


def test_no_steps_give_the_start(tiny_bundle: Bundle) -> None:
    samples = sample(tiny_bundle, CONDITION, 1, steps=0, start="images", images=photo())
    assert torch.equal(samples.images, photo())


def test_a_low_level_leaves_a_given_image_as_it_is(tiny_levels: Bundle) -> None:
    """How much of an image may change is the level that its chain begins at."""
    options = {"start": "images", "images": photo(), "guidance": 1.0}
    near, far = (sample(tiny_levels, CONDITION, 4, start_level=level, **options).images for level in (0.02, 10.0))
    torch.testing.assert_close(near, photo().expand(4, -1, -1, -1), atol=0.06, rtol=0)
    assert (far - photo()).abs().mean() > 10 * (near - photo()).abs().mean()


def test_the_best_of_ten_have_the_highest_log_p(bundle: Bundle) -> None:
    all_of_them = sample(bundle, CONDITION, 20, steps=3)
    kept = sample(bundle, CONDITION, 2, steps=3, keep_best=10)
    top = all_of_them.log_p_condition.sort(descending=True).values[:2]
    torch.testing.assert_close(kept.log_p_condition, top, atol=1e-5, rtol=0)
    assert kept.images.shape == (2, 3, 32, 32)
    torch.testing.assert_close(kept.probabilities, bundle.model.predict(kept.images), atol=1e-5, rtol=1e-4)


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
    assert best(samples, 2).images.flatten().tolist() == [0, 2]
    assert best(samples, 3).images.flatten().tolist() == [0, 2, 1]
    assert best(samples, 4) is samples


def grey(bundle: Bundle, n: int = 2, **changes: object) -> Chains:
    """Chains at mid-grey."""
    middle = torch.full((1, 3, 32, 32), 0.5)
    return bundle.chains(CONDITION, n, images=middle, start="images", sampler="resampling", **changes)


def test_chains_advance_step_by_step(tiny_bundle: Bundle) -> None:
    """They are the kernel with the settings of the model, the random numbers of the seed, and nothing besides."""
    chains, randomness = grey(tiny_bundle, steps=4), chain_generators(0, 2)
    kernel = tiny_bundle.sampler(tiny_bundle.sampling | {"sampler": "resampling"})
    expected = kernel.init(torch.full((2, 3, 32, 32), 0.5), CONDITION.tensor(2), randomness)
    for number, step in enumerate(constant(1.0, 0.001, 4), start=1):
        assert not chains.finished
        info = chains.advance()
        expected, _ = kernel.step(expected, step, randomness)
        assert chains.state.step == number
        assert torch.equal(chains.state.x, expected.x)
        assert torch.equal(chains.state.y, expected.y)
        assert info.energy.shape == (2,)
    assert chains.finished
    with pytest.raises(ValueError, match="The chains have arrived"):
        chains.advance()


def test_a_running_chain_can_be_steered(bundle: Bundle) -> None:
    plain, steered = grey(bundle, steps=5), grey(bundle, steps=5)
    for chains in (plain, steered):
        chains.advance()
    assert torch.equal(plain.state.x, steered.state.x)
    steered.steer(Condition.from_dict(TINY_NAMES, {"Red": False}))
    for chains in (plain, steered):
        chains.advance()
        assert chains.state.step == 2
    assert (steered.state.y[:, 0] == 0).all()
    assert (plain.state.y[:, 0] == 1).all()
    assert not torch.equal(plain.state.x, steered.state.x)


def test_chains_are_augmented_at_every_nth_step(tiny_bundle: Bundle) -> None:
    """Steps 1 and 2 are as without; before step 3 chains are augmented with their own generators."""
    with_it, without = (grey(tiny_bundle, 32, steps=3, augment_every=every) for every in (2, 0))
    for _ in range(2):
        with_it.advance()
        without.advance()
    assert torch.equal(with_it.state.x, without.state.x)
    blurred = without.state._replace(x=augment_chains(without.state.x, without.memory.randomness, flip=False))
    with_it.advance()
    expected, _ = without.kernel.step(blurred, without.next_step, without.memory.randomness)
    assert torch.equal(with_it.state.x, expected.x)
    changed = (blurred.x != without.state.x).flatten(1).any(dim=1)
    assert 0 < changed.sum() < 32  # each with a coin of its own
    once, never = (sample(tiny_bundle, CONDITION, 32, steps=3, augment_every=every).images for every in (2, 0))
    assert not torch.equal(once, never)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (torch.full((2, 3), -1), r"condition is torch.int64 \(2, 3\); expected torch.int64 \(2, 6\)"),
        (torch.full((3, 6), -1), r"condition is torch.int64 \(3, 6\); expected torch.int64 \(2, 6\)"),
        (torch.full((2, 6), 5), "condition holds the value 5"),
        (torch.full((2, 6), -1.0), "condition is torch.float32"),
    ],
)
def test_rows_of_a_condition_that_do_not_fit_are_refused_and_change_nothing(
    bundle: Bundle, rows: torch.Tensor, message: str
) -> None:
    chains = grey(bundle, steps=4)
    chains.advance()
    before = chains.state
    with pytest.raises(ValueError, match=message):
        chains.steer(rows)
    with pytest.raises(ValueError, match=message):
        bundle.chains(rows, 2)
    assert chains.state is before
    chains.steer(Condition.from_lists(TINY_NAMES, ["Left"]).tensor(2))  # rows that fit are taken
    chains.advance()
    assert (chains.state.y[:, TINY_NAMES.index("Left")] == 1).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, "n is 0; expected a whole number of at least 1"),
        ({"n": 2.5}, r"n is 2\.5"),
        ({"steps": -1}, "steps is -1"),
        ({"steps": 1.5}, r"steps is 1\.5"),
        ({"keep_best": 0}, "keep_best is 0"),
        ({"sampler": "gibbs"}, "sampler is 'gibbs'; choose one of resampling, marginalizing"),
        ({"start": "zeros"}, "start is 'zeros'; choose one of conditional, informed"),
        ({"start": "images"}, "The start is 'images', but no image was given"),
        ({"start": "images", "images": torch.rand(1, 3, 16, 16)}, r"\(1, 3, 16, 16\); expected \(N, 3, 32, 32\)"),
        ({"temperature": 1.0}, "no sampling setting 'temperature'; choose one of sampler, start, steps"),
        ({"guidance": float("nan")}, "guidance is nan; expected a number from 0 to 50"),
        ({"precision": "half"}, "precision is 'half'"),
        ({"condition": Condition.free(("Red",))}, r"over \('Red',\); the model knows"),
    ],
)
def test_a_bad_request_is_refused(bundle: Bundle, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sample(bundle, **({"condition": CONDITION, "n": 1} | changes))


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("tiny_bundle", {"grad_coef": -1.0}, r"grad_coef is -1\.0"),
        ("tiny_bundle", {"preconditioner": -1.0}, r"preconditioner is -1\.0"),
        ("tiny_bundle", {"start_level": 1.0}, "start_level means nothing to a model with no noise levels"),
        ("tiny_bundle", {"lift": 1.0}, "lift means nothing"),
        ("tiny_levels", {"start_level": 0.0}, r"start_level is 0\.0; expected a number from 0\.02 to 40"),
        ("tiny_levels", {"start_level": float("inf")}, "start_level is inf"),
        ("tiny_levels", {"lift": float("nan")}, "lift is nan"),
        ("tiny_levels", {"wander_level": -1}, "wander_level is -1"),
        ("tiny_levels", {"descent": "fast"}, "descent is 'fast'; choose one of ancestral, deterministic"),
        ("tiny_levels", {"descent": ["ancestral"]}, r"descent is \['ancestral'\]; choose one of"),
        ("tiny_levels", {"margin": -1}, "margin is -1; expected a number from 0 to 20"),
        ("tiny_levels", {"grad_coef": 1.0}, "grad_coef means nothing to a model with noise levels; its settings are"),
    ],
)
def test_a_setting_of_the_other_kind_or_out_of_range_is_refused(
    request: pytest.FixtureRequest, kind: str, changes: dict, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sample(request.getfixturevalue(kind), CONDITION, 1, **changes)


def test_a_model_that_diverged_in_training_is_refused(bundle: Bundle) -> None:
    sick = copy.deepcopy(bundle)
    levels = isinstance(sick.model, ResidualModel)
    layer, name = (sick.model.net.dense, "net.dense") if levels else (sick.model.mlp[0], "mlp.0")
    layer.bias.data[3] = torch.inf
    with pytest.raises(ValueError, match=rf"{name}\.bias holds NaN or infinite"):
        sample(sick, CONDITION, 1)
