"""One contract for every sampler, with and without noise levels, from every start, on every device."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from jem_core.bundle import Bundle
from jem_core.condition import FREE, Condition
from jem_core.gaussian import Preconditioner
from jem_core.model import JointEnergyModel
from jem_core.random import Randomness, chain_generators, generator
from jem_core.samplers import SAMPLERS, ChainState, KernelSettings, Sampler, StepInfo, lift, make_sampler
from jem_core.schedules import Step, constant, descend, hold, karras_levels
from jem_core.settings import starts_for
from tests.conftest import TINY_NAMES

DEVICES = [
    "cpu",
    *(["cuda"] if torch.cuda.is_available() else []),
    *(["mps"] if torch.backends.mps.is_available() else []),
]
K = len(TINY_NAMES)
CONDITION = Condition.from_dict(TINY_NAMES, {"Red": True, "Striped": False})
TOP = 2.0  # the level that chains begin at, where there are levels


@dataclass(frozen=True)
class World:
    """One kind of model, and the steps that suit it."""

    bundle: Bundle
    name: str  # of the sampler

    @property
    def model(self) -> JointEnergyModel:
        return self.bundle.model

    def sampler(self, **settings: object) -> Sampler:
        return make_sampler(self.name, self.model, KernelSettings(**settings))

    def steps(self, count: int) -> list[Step]:
        """Down the levels, or the paper's."""
        if self.model.levels:
            return descend(karras_levels(TOP, self.model.lowest, count))
        return constant(1.0, 0.001, count)

    def stay(self, count: int) -> list[Step]:
        """At one level."""
        return hold(TOP, 0.1, count) if self.model.levels else self.steps(count)

    def begin(self, sampler: Sampler, n: int, randomness: Randomness, condition: Tensor | None = None) -> ChainState:
        """Chains at noise, at the level of the first step."""
        x = torch.rand(n, 3, 32, 32, generator=generator(0))
        asked = CONDITION.tensor(n) if condition is None else condition
        if self.model.levels:
            return sampler.init(self.model.encode(x) * TOP * 3**0.5, asked, randomness, level=TOP)
        return sampler.init(x, asked, randomness)


@pytest.fixture(params=SAMPLERS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["tiny_bundle", "tiny_levels"])
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return request.getfixturevalue(request.param)


@pytest.fixture
def world(bundle: Bundle, name: str) -> World:
    return World(bundle, name)


def same(a: ChainState, b: ChainState) -> bool:
    return all(torch.equal(getattr(a, field), getattr(b, field)) for field in ("x", "y", "condition"))


def run(sampler: Sampler, state: ChainState, steps: list[Step], randomness: Randomness) -> ChainState:
    for step in steps:
        state, _ = sampler.step(state, step, randomness)
    return state


def check_step(state: ChainState, info: StepInfo, n: int) -> None:
    """What every sampler promises of every step."""
    asked = state.condition != FREE
    assert state.x.shape == info.denoised.shape == (n, 3, 32, 32)
    assert state.x.dtype == torch.float32
    assert not state.x.requires_grad
    assert state.y.dtype == torch.int64
    assert set(state.y.unique().tolist()) <= {0, 1}
    assert torch.equal(state.y[asked], state.condition[asked])
    for per_chain in (info.energy, info.log_marginal, info.grad_norm, info.log_p_condition, info.diverged):
        assert per_chain.shape == (n,)
        assert not per_chain.requires_grad
    assert info.flipped.shape == info.probabilities.shape == (n, K)
    assert (info.grad_norm > 0).all()
    assert (info.log_p_condition < 0).all()
    assert not info.diverged.any()


STARTS = [(kind, start) for kind in ("tiny_bundle", "tiny_levels") for start in starts_for(kind == "tiny_levels")]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("kind", "start"), STARTS, ids=[f"{kind}-{start}" for kind, start in STARTS])
def test_contract(request: pytest.FixtureRequest, kind: str, start: str, name: str, device: str) -> None:
    """Whatever chains start from: shapes, ranges, labels that were asked for, levels that fall, inputs untouched."""
    world, n = World(Bundle.read(request.getfixturevalue(kind).directory, device), name), 3
    asked, photos = CONDITION.tensor(n, device), torch.rand(2, 3, 32, 32, generator=generator(0)).to(device)
    images = world.bundle.start.images(start, asked, chain_generators(0, n, device), given=photos)
    assert images.shape == (n, 3, 32, 32)
    x = world.model.encode(images)
    kept = x.clone()
    sampler, randomness = world.sampler(steps_per_sweep=2), chain_generators(1, n, device)
    state = sampler.init(x, asked, randomness)
    if world.model.levels:
        state = lift(state, TOP, randomness)
    before = ChainState(state.x.clone(), state.y.clone(), state.condition.clone(), state.step, state.level)
    for number, step in enumerate(world.steps(4), start=1):
        assert state.level == step.sigma
        state, info = sampler.step(state, step, randomness)
        check_step(state, info, n)
        assert (state.step, state.level) == (number, step.to)
        assert state.x.device.type == device
    assert state.level == 0
    ends = world.model.decode(state.x)
    assert ends.min() >= 0
    assert ends.max() <= 1
    assert not torch.equal(state.x, before.x)
    again = sampler.init(x, asked, chain_generators(1, n, device))
    assert (again.step, again.level) == (0, 0)
    assert torch.equal(again.y, before.y)
    assert torch.equal(x, kept)  # chains do not write into what they were given
    assert all(weight.grad is None for weight in world.model.parameters())


def test_the_same_seed_gives_the_same_bits(world: World) -> None:
    sampler = world.sampler()

    def chains(seed: int) -> ChainState:
        randomness = generator(seed)
        return run(sampler, world.begin(sampler, 4, randomness), world.steps(12), randomness)

    assert same(chains(3), chains(3))
    assert not torch.equal(chains(3).x, chains(4).x)


def test_sixteen_chains_are_sixteen_times_one(world: World) -> None:
    """With a generator each, and a condition each, chains do not know of each other."""
    strong = None if world.model.levels else Preconditioner.from_gaussian(world.bundle.gaussian, 10.0)
    sampler = world.sampler(steps_per_sweep=2, preconditioner=strong)
    condition = torch.randint(-1, 2, (16, K), generator=generator(1))
    begun = world.begin(sampler, 16, chain_generators(5, 16), condition)
    randomness, steps = chain_generators(6, 16), world.steps(10)
    together = run(sampler, begun, steps, randomness)
    for i, own in enumerate(chain_generators(6, 16)):
        one = begun._replace(**{part: getattr(begun, part)[i : i + 1] for part in ("x", "y", "condition")})
        alone = run(sampler, one, steps, [own])
        torch.testing.assert_close(alone.x[0], together.x[i], atol=1e-5, rtol=0)
        assert torch.equal(alone.y[0], together.y[i])


def test_conditioned_labels_never_change_and_free_ones_do(world: World) -> None:
    sampler, randomness = world.sampler(), generator(0)
    state = world.begin(sampler, 8, randomness)
    asked, flips = state.condition != FREE, torch.zeros(8, K)
    for step in world.stay(30):
        before = state
        state, info = sampler.step(state, step, randomness)
        assert torch.equal(state.y[asked], state.condition[asked])
        assert torch.equal(info.flipped, state.y != before.y)
        flips += info.flipped
    assert flips[asked].sum() == 0
    assert (flips[~asked] > 0).all()


@pytest.mark.parametrize("steps_per_sweep", [1, 3])
def test_steering_changes_only_what_follows(world: World, steps_per_sweep: int) -> None:
    sampler = world.sampler(steps_per_sweep=steps_per_sweep)
    other = Condition.from_dict(TINY_NAMES, {"Red": False, "Framed": True}).tensor(4)

    def path(steer_at: int | None) -> list[ChainState]:
        randomness, states = generator(0), []
        state = world.begin(sampler, 4, randomness)
        for number, step in enumerate(world.steps(8)):
            if number == steer_at:
                state = state._replace(condition=other)
            state, _ = sampler.step(state, step, randomness)
            states.append(state)
        return states

    plain, steered = path(None), path(4)
    assert all(same(a, b) for a, b in zip(plain[:4], steered[:4], strict=True))
    assert not torch.equal(plain[4].x, steered[4].x)
    for state in steered[4:]:  # at once, in the middle of a sweep too
        assert (state.y[:, TINY_NAMES.index("Red")] == 0).all()
        assert (state.y[:, TINY_NAMES.index("Framed")] == 1).all()


def first_layer(model: JointEnergyModel) -> nn.Module:
    return model.net.stem if model.levels else model.cnn[0]


def counted(model: JointEnergyModel, call: Callable[[], object]) -> dict[str, int]:
    """How often the network was evaluated and differentiated."""
    counts, layer = {"forward": 0, "backward": 0}, first_layer(model)
    handles = [
        layer.register_forward_hook(lambda *_: counts.update(forward=counts["forward"] + 1)),
        layer.register_full_backward_hook(lambda *_: counts.update(backward=counts["backward"] + 1)),
    ]
    try:
        call()
    finally:
        for handle in handles:
            handle.remove()
    return counts


@pytest.mark.parametrize("steps_per_sweep", [1, 2, 5])
def test_t_steps_cost_t_forwards_and_t_backwards(world: World, steps_per_sweep: int) -> None:
    sampler, randomness = world.sampler(steps_per_sweep=steps_per_sweep, guidance=3.0), generator(0)
    state = world.begin(sampler, 2, randomness)
    found = counted(world.model, lambda: run(sampler, state, world.steps(10), randomness))
    assert found == {"forward": 10, "backward": 10}


def test_a_lift_costs_no_evaluation(world: World) -> None:
    sampler, randomness = world.sampler(), generator(0)
    state = world.begin(sampler, 2, randomness)
    assert counted(world.model, lambda: lift(state, 5.0, randomness)) == {"forward": 0, "backward": 0}


def test_the_halves_of_a_sweep_make_the_whole(world: World) -> None:
    sampler = world.sampler()
    whole, halves = generator(0), generator(0)
    start, step = world.begin(sampler, 4, generator(9)), world.steps(3)[0]
    one, info = sampler.step(start, step, whole)
    first, label_info = sampler.resample_labels(start, halves)
    assert torch.equal(first.x, start.x)
    assert torch.equal(first.y, one.y)
    assert (first.step, first.level) == (start.step, start.level)
    second, move_info = sampler.langevin(first, step, halves)
    assert torch.equal(second.y, first.y)
    assert torch.equal(second.x, one.x)
    assert second.level == one.level
    torch.testing.assert_close(move_info.energy, info.energy)
    torch.testing.assert_close(label_info.energy, info.energy)
    assert (label_info.grad_norm == 0).all()


def test_nothing_asked_is_certain(world: World) -> None:
    sampler = world.sampler()
    state = world.begin(sampler, 2, generator(0), Condition.free(TINY_NAMES).tensor(2))
    _, info = sampler.step(state, world.steps(2)[0], generator(0))
    assert (info.log_p_condition == 0).all()


def test_everything_asked_makes_the_samplers_one(bundle: Bundle) -> None:
    """With no free label Algorithms 2 and 3 are the same chain."""
    asked, ends = torch.tensor([[1, 0, 1, 0, 1, 0]] * 3), []
    for name in SAMPLERS:
        world = World(bundle, name)
        sampler = world.sampler()
        ends.append(run(sampler, world.begin(sampler, 3, generator(0), asked), world.steps(5), generator(1)))
    torch.testing.assert_close(ends[0].x, ends[1].x, atol=1e-5, rtol=0)


def test_given_labels_are_kept_where_nothing_is_asked(world: World) -> None:
    y, x = torch.tensor([[0, 1, 1, 0, 1, 0]]), torch.rand(1, 3, 32, 32, generator=generator(0))
    state = world.sampler().init(x, CONDITION.tensor(1), generator(0), y)
    assert state.y.tolist() == [[1, 1, 0, 0, 1, 0]]


def test_a_step_for_another_level_is_refused(world: World) -> None:
    sampler = world.sampler()
    state = world.begin(sampler, 1, generator(0))
    wrong = Step(1.0, 0.1, 0.1, 0.5)
    for call in (sampler.step, sampler.langevin):
        with pytest.raises(ValueError, match=f"step is for noise level 1; the chains stand at {state.level:g}"):
            call(state, wrong, generator(0))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_both_precisions_step(world: World, precision: str) -> None:
    sampler, randomness = world.sampler(precision=precision), generator(0)
    state = world.begin(sampler, 2, randomness)
    for step in world.steps(3):
        state, info = sampler.step(state, step, randomness)
        check_step(state, info, 2)
        assert info.energy.dtype == info.probabilities.dtype == torch.float32
