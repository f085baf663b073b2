"""One contract for both samplers, every start and every device; and what steering, seeds and batches may change."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from jem_core.bundle import Bundle
from jem_core.condition import FREE, Condition
from jem_core.gaussian import Preconditioner
from jem_core.model import JointEnergyModel, log_prob_from_logits
from jem_core.random import chain_generators, generator
from jem_core.samplers import SAMPLER_NAMES, ChainState, LangevinSettings, Sampler, saturated
from jem_core.starts import START_NAMES, start_chains
from tests.conftest import TINY_NAMES

DEVICES = [
    "cpu",
    *(["cuda"] if torch.cuda.is_available() else []),
    *(["mps"] if torch.backends.mps.is_available() else []),
]
K = len(TINY_NAMES)
CONDITION = Condition.from_dict(TINY_NAMES, {"Red": True, "Striped": False})


@pytest.fixture(params=SAMPLER_NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def model(tiny_bundle: Bundle) -> JointEnergyModel:
    return tiny_bundle.model


def noise(n: int, seed: int = 0) -> Tensor:
    return torch.rand(n, 3, 32, 32, generator=generator(seed))


def same(a: ChainState, b: ChainState) -> bool:
    return all(torch.equal(getattr(a, field), getattr(b, field)) for field in ("x", "y", "condition"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("start", START_NAMES)
def test_contract(tiny_bundle: Bundle, name: str, start: str, device: str) -> None:
    """What every sampler promises, whatever its chains start from."""
    bundle = Bundle.read(tiny_bundle.directory, device)
    n = 3
    x = start_chains(
        start,
        n,
        gaussian=bundle.gaussian,
        buffer=bundle.buffer,
        condition=CONDITION,
        randomness=chain_generators(0, n, device),
        images=noise(2).to(device),
    )
    sampler = Sampler(name, bundle.model, LangevinSettings(steps_per_sweep=2))
    randomness = chain_generators(1, n, device)
    state = sampler.init(x, CONDITION.tensor(n, device), randomness)
    asked = state.condition != FREE
    before = ChainState(state.x.clone(), state.y.clone(), state.condition.clone(), state.step)
    for step in range(1, 4):
        state, info = sampler.step(state, randomness)
        assert state.step == step
        assert state.x.shape == (n, 3, 32, 32)
        assert state.x.device.type == device
        assert not state.x.requires_grad
        assert state.x.min() >= 0
        assert state.x.max() <= 1
        assert state.y.dtype == torch.int64
        assert set(state.y.unique().tolist()) <= {0, 1}
        assert torch.equal(state.y[asked], state.condition[asked])
        for per_chain in (info.energy, info.grad_norm, info.log_p_condition, info.diverged):
            assert per_chain.shape == (n,)
        assert info.flipped.shape == info.probabilities.shape == (n, K)
        assert (info.grad_norm > 0).all()
        assert (info.log_p_condition < 0).all()
        assert not info.diverged.any()
    assert not torch.equal(state.x, before.x)
    assert sampler.init(x, CONDITION.tensor(n, device), chain_generators(1, n, device)).step == 0
    assert same(
        sampler.init(x, CONDITION.tensor(n, device), chain_generators(1, n, device)), before
    )  # x was not touched
    assert all(weight.grad is None for weight in bundle.model.parameters())


def run(sampler: Sampler, state: ChainState, randomness, steps: int) -> ChainState:
    for _ in range(steps):
        state, _ = sampler.step(state, randomness)
    return state


def test_the_same_seed_gives_the_same_bits(model: JointEnergyModel, name: str) -> None:
    sampler = Sampler(name, model)

    def chains(seed: int) -> ChainState:
        randomness = generator(seed)
        return run(sampler, sampler.init(noise(4), CONDITION.tensor(4), randomness), randomness, 12)

    assert same(chains(3), chains(3))
    assert not torch.equal(chains(3).x, chains(4).x)


def test_sixteen_chains_are_sixteen_times_one(tiny_bundle: Bundle, name: str) -> None:
    """With a generator each, and a condition each, chains do not know of each other."""
    strong = Preconditioner.from_gaussian(tiny_bundle.gaussian, 10.0)
    sampler = Sampler(name, tiny_bundle.model, LangevinSettings(steps_per_sweep=2, preconditioner=strong))
    x, condition = noise(16), torch.randint(-1, 2, (16, K), generator=generator(1))
    randomness = chain_generators(5, 16)
    together = run(sampler, sampler.init(x, condition, randomness), randomness, 10)
    for i, own in enumerate(chain_generators(5, 16)):
        alone = run(sampler, sampler.init(x[i : i + 1], condition[i : i + 1], [own]), [own], 10)
        torch.testing.assert_close(alone.x[0], together.x[i], atol=1e-5, rtol=0)
        assert torch.equal(alone.y[0], together.y[i])


def test_conditioned_labels_never_change_and_free_ones_do(model: JointEnergyModel, name: str) -> None:
    sampler, randomness = Sampler(name, model), generator(0)
    state = sampler.init(noise(8), CONDITION.tensor(8), randomness)
    asked, flips = state.condition != FREE, torch.zeros(8, K)
    for _ in range(30):
        before = state
        state, info = sampler.step(state, randomness)
        assert torch.equal(state.y[asked], state.condition[asked])
        assert torch.equal(info.flipped, state.y != before.y)
        flips += info.flipped
    assert flips[asked].sum() == 0
    assert (flips[~asked] > 0).all()


@pytest.mark.parametrize("steps_per_sweep", [1, 3])
def test_steering_changes_only_what_follows(model: JointEnergyModel, name: str, steps_per_sweep: int) -> None:
    sampler = Sampler(name, model, LangevinSettings(steps_per_sweep=steps_per_sweep))
    other = Condition.from_dict(TINY_NAMES, {"Red": False, "Framed": True}).tensor(4)

    def path(steer_at: int | None) -> list[ChainState]:
        randomness, states = generator(0), []
        state = sampler.init(noise(4), CONDITION.tensor(4), randomness)
        for step in range(8):
            if step == steer_at:
                state = state._replace(condition=other)
            state, _ = sampler.step(state, randomness)
            states.append(state)
        return states

    plain, steered = path(None), path(4)
    assert all(same(a, b) for a, b in zip(plain[:4], steered[:4], strict=True))
    assert not torch.equal(plain[4].x, steered[4].x)
    for state in steered[4:]:  # at once, in the middle of a sweep too
        assert (state.y[:, TINY_NAMES.index("Red")] == 0).all()
        assert (state.y[:, TINY_NAMES.index("Framed")] == 1).all()


@pytest.mark.parametrize("steps_per_sweep", [1, 2, 5])
def test_t_steps_cost_t_forwards_and_t_backwards(model: JointEnergyModel, name: str, steps_per_sweep: int) -> None:
    counts = {"forward": 0, "backward": 0}
    handles = [
        model.cnn[0].register_forward_hook(lambda *_: counts.update(forward=counts["forward"] + 1)),
        model.cnn[0].register_full_backward_hook(lambda *_: counts.update(backward=counts["backward"] + 1)),
    ]
    forward, calls = model.logits, []
    model.logits = lambda x: calls.append(1) or forward(x)
    try:
        sampler, randomness = Sampler(name, model, LangevinSettings(steps_per_sweep=steps_per_sweep)), generator(0)
        run(sampler, sampler.init(noise(2), CONDITION.tensor(2), randomness), randomness, 10)
    finally:
        del model.logits
        for handle in handles:
            handle.remove()
    assert len(calls) == 10
    assert counts == {"forward": 10, "backward": 10}


def test_the_halves_of_a_sweep_make_the_whole(model: JointEnergyModel, name: str) -> None:
    sampler = Sampler(name, model)
    whole, halves = generator(0), generator(0)
    start = sampler.init(noise(4), CONDITION.tensor(4), generator(9))
    one, info = sampler.step(start, whole)
    first, label_info = sampler.resample_labels(start, halves)
    assert torch.equal(first.x, start.x)
    assert torch.equal(first.y, one.y)
    assert first.step == start.step
    second, move_info = sampler.langevin(first, halves)
    assert torch.equal(second.y, first.y)
    assert torch.equal(second.x, one.x)
    torch.testing.assert_close(move_info.energy, info.energy)
    torch.testing.assert_close(label_info.energy, info.energy)
    assert (label_info.grad_norm == 0).all()


def energies(model: JointEnergyModel) -> dict[str, Callable[[Tensor, ChainState], Tensor]]:
    return {
        "resampling": lambda x, state: model.log_prob(x, state.y),
        "marginalizing": lambda x, state: model.log_prob(x, state.condition, state.condition != FREE),
    }


@pytest.mark.parametrize("guidance", [1.0, 3.0])
def test_a_step_is_the_gradient_of_the_algorithms_target(model: JointEnergyModel, name: str, guidance: float) -> None:
    """Algorithms 2 and 3 without noise, against autograd of the model's own formulas; guidance adds log p(y_c | x)."""
    sampler = Sampler(name, model, LangevinSettings(grad_coef=0.05, noise_std=0.0, guidance=guidance))
    state = sampler.init(noise(3) * 0.5 + 0.25, CONDITION.tensor(3), generator(0))
    after, info = sampler.step(state, generator(1))
    x = state.x.clone().requires_grad_()
    log_density = energies(model)[name](x, after)
    log_p = model.predict(x)[:, 0].log() + (1 - model.predict(x)[:, 2]).log()  # with Red, without Striped
    target = log_density + (guidance - 1) * log_p
    (grad,) = torch.autograd.grad(target.sum(), x)
    torch.testing.assert_close(after.x, state.x + 0.05 * grad, atol=1e-6, rtol=0)
    torch.testing.assert_close(info.energy, -log_density.detach())
    torch.testing.assert_close(info.grad_norm, grad.flatten(1).norm(dim=1))
    torch.testing.assert_close(info.log_p_condition, log_p.detach())
    torch.testing.assert_close(info.probabilities, model.predict(state.x))


def test_settings_do_what_they_say(tiny_bundle: Bundle, name: str) -> None:
    model = tiny_bundle.model
    state = Sampler(name, model).init(noise(2), CONDITION.tensor(2), generator(0))

    def move(**changes) -> Tensor:
        sampler = Sampler(name, model, LangevinSettings(**({"grad_coef": 1.0, "noise_std": 0.0} | changes)))
        return sampler.langevin(state, generator(0))[0].x

    drift = move(clamp=False) - state.x
    bound = drift.abs().median().item()
    torch.testing.assert_close(
        move(clamp=False, grad_clamp=bound) - state.x, drift.clamp(-bound, bound), atol=1e-6, rtol=0
    )
    matrix = Preconditioner.from_gaussian(tiny_bundle.gaussian, 5.0)
    torch.testing.assert_close(
        move(clamp=False, preconditioner=matrix), state.x + matrix.apply(drift), atol=1e-6, rtol=0
    )
    xi = torch.randn(state.x.shape, generator=generator(0))
    noisy = move(grad_coef=0.0, noise_std=0.1, clamp=False, preconditioner=matrix)
    torch.testing.assert_close(noisy, state.x + 0.1 * matrix.apply_sqrt(xi), atol=1e-6, rtol=0)
    assert move(grad_coef=0.0, noise_std=2.0).min() == 0
    assert move(grad_coef=0.0, noise_std=2.0).max() == 1


def test_nothing_asked_is_certain(model: JointEnergyModel, name: str) -> None:
    sampler = Sampler(name, model)
    state = sampler.init(noise(2), Condition.free(TINY_NAMES).tensor(2), generator(0))
    _, info = sampler.step(state, generator(0))
    assert (info.log_p_condition == 0).all()


def test_everything_asked_makes_the_samplers_one(model: JointEnergyModel) -> None:
    """With no free label Algorithms 2 and 3 are the same chain."""
    asked = torch.tensor([[1, 0, 1, 0, 1, 0]] * 3)
    ends = [
        run(s := Sampler(kind, model), s.init(noise(3), asked, generator(0)), generator(1), 5) for kind in SAMPLER_NAMES
    ]
    torch.testing.assert_close(ends[0].x, ends[1].x, atol=1e-6, rtol=0)


def test_diverged_chains_are_told_apart(model: JointEnergyModel, name: str) -> None:
    sampler = Sampler(name, model)
    x = noise(3)
    x[1] = (x[1] > 0.5).float()  # every pixel in a corner of the cube
    state = sampler.init(x, CONDITION.tensor(3), generator(0))
    state.x[2, 0, 0, 0] = torch.nan
    _, info = sampler.step(state, generator(0))
    assert info.diverged.tolist() == [False, True, True]
    assert saturated(x).tolist() == [False, True, False]


def test_given_labels_are_kept_where_nothing_is_asked(model: JointEnergyModel, name: str) -> None:
    y = torch.tensor([[0, 1, 1, 0, 1, 0]])
    state = Sampler(name, model).init(noise(1), CONDITION.tensor(1), generator(0), y)
    assert state.y.tolist() == [[1, 1, 0, 0, 1, 0]]


@pytest.mark.parametrize(
    ("settings", "temperature"),
    [({}, 5e-7), ({"grad_coef": 1.0, "noise_std": 0.01}, 5e-5), ({"grad_coef": 0.0}, float("inf"))],
)
def test_the_temperature_that_the_numbers_imply(settings: dict, temperature: float) -> None:
    """METHOD's table: 1 and 0.001 imply a temperature of eps^2 / 2 = 5e-7 (Eq. 3)."""
    assert LangevinSettings(**settings).temperature == pytest.approx(temperature)


def test_the_differentiable_step_is_the_step(model: JointEnergyModel, name: str) -> None:
    sampler = Sampler(name, model, LangevinSettings(grad_clamp=0.01))
    state = sampler.init(noise(2), CONDITION.tensor(2), generator(0))
    plain, _ = sampler.langevin(state, generator(1))
    assert torch.equal(sampler.differentiable_langevin(state, generator(1)).detach(), plain.x)


def bad_calls(model: JointEnergyModel) -> dict:
    sampler, x, asked, g = Sampler("resampling", model), noise(2), CONDITION.tensor(2), generator(0)
    return {
        "no such sampler": (lambda: Sampler("gibbs", model), "'gibbs'; choose resampling or marginalizing"),
        "bytes": (lambda: sampler.init((x * 255).byte(), asked, g), "uint8"),
        "another size": (lambda: sampler.init(x[..., :16, :16], asked, g), r"\(2, 3, 16, 16\)"),
        "out of range": (lambda: sampler.init(x * 2 - 1, asked, g), r"range from -.*\[0, 1\]"),
        "not a number": (lambda: sampler.init(x * torch.nan, asked, g), "nan"),
        "condition of another K": (
            lambda: sampler.init(x, asked[:, :3], g),
            r"\(2, 3\); expected torch.int64 \(2, 6\)",
        ),
        "condition of one chain": (lambda: sampler.init(x, asked[0], g), r"condition is torch.int64 \(6,\)"),
        "condition of floats": (lambda: sampler.init(x, asked.float(), g), "condition is torch.float32"),
        "condition of bytes": (lambda: sampler.init(x, asked.to(torch.int8), g), "condition is torch.int8"),
        "condition holds 2": (lambda: sampler.init(x, asked + 1, g), "condition holds the value 2"),
        "condition holds -2": (lambda: sampler.init(x, asked * 2, g), "condition holds the value (-2|2)"),
        "labels of another K": (lambda: sampler.init(x, asked, g, asked[:, :2]), r"y is torch.int64 \(2, 2\)"),
        "unknown labels": (lambda: sampler.init(x, asked, g, asked), "y holds the value -1"),
        "generators": (lambda: sampler.init(x, asked, [g] * 3), "3 generators were given for 2 chains"),
        "coefficient": (lambda: LangevinSettings(grad_coef=-1.0), "grad_coef is -1.0"),
        "coefficient nan": (lambda: LangevinSettings(grad_coef=float("nan")), "grad_coef is nan"),
        "noise": (lambda: LangevinSettings(noise_std=float("inf")), "noise_std is inf"),
        "guidance": (lambda: LangevinSettings(guidance="strong"), "guidance is 'strong'"),
        "clamp": (lambda: LangevinSettings(grad_clamp=0), "grad_clamp is 0"),
        "clamp of words": (lambda: LangevinSettings(grad_clamp="1"), "grad_clamp is '1'"),
        "sweep": (lambda: LangevinSettings(steps_per_sweep=0), "steps_per_sweep is 0"),
        "half a sweep": (lambda: LangevinSettings(steps_per_sweep=1.5), "steps_per_sweep is 1.5"),
    }


@pytest.mark.parametrize("case", bad_calls(JointEnergyModel(TINY_NAMES, 32, 1)))
def test_bad_input_is_refused_by_value(model: JointEnergyModel, case: str) -> None:
    call, message = bad_calls(model)[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_log_prob_from_logits_is_what_samplers_move_under(model: JointEnergyModel) -> None:
    x, y = noise(2), torch.tensor([[0, 1, 0, 1, 0, 1]] * 2)
    torch.testing.assert_close(log_prob_from_logits(model.logits(x), y), model.log_prob(x, y))
