"""What one step of a kernel does: the gradient of its algorithm's target, its settings, and what it refuses."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from jem_core.bundle import Bundle
from jem_core.condition import FREE, Condition
from jem_core.gaussian import Preconditioner
from jem_core.model import JointEnergyModel, log_prob_from_logits
from jem_core.networks.paper import PaperModel
from jem_core.networks.residual import ResidualModel
from jem_core.random import generator
from jem_core.samplers import SAMPLERS, ChainState, KernelSettings, Resampling, StepInfo, lift, make_sampler, saturated
from jem_core.schedules import Step, constant
from tests.conftest import TINY_NAMES, TINY_NET

K = len(TINY_NAMES)
CONDITION = Condition.from_dict(TINY_NAMES, {"Red": True, "Striped": False})
PAPER_STEP = constant(1.0, 0.001, 1)[0]


@pytest.fixture(params=SAMPLERS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def model(tiny_bundle: Bundle) -> JointEnergyModel:
    return tiny_bundle.model


@pytest.fixture(scope="module")
def pushed() -> ResidualModel:
    """A network of noise levels whose energy is not flat: half of the weights begin at zero."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = ResidualModel(TINY_NAMES, image_size=32, **TINY_NET)
        for weight in net.parameters():
            weight.data += 0.1 * torch.randn(weight.shape)
    return net.requires_grad_(False)


def noise(n: int, seed: int = 0) -> Tensor:
    return torch.rand(n, 3, 32, 32, generator=generator(seed))


def log_densities(logits: Tensor, state: ChainState) -> dict[str, Tensor]:
    return {
        "resampling": log_prob_from_logits(logits, state.y),
        "marginalizing": log_prob_from_logits(logits, state.condition, state.condition != FREE),
    }


def target_gradient(
    logits: Callable[[Tensor], Tensor], name: str, state: ChainState, x: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """By autograd of the plain formulas: grad of log p~ + (weight - 1) log p(y_k | x); log p~; log p(y_c | x).

    CONDITION asks for Red (0) and no Striped (2).
    """
    x = x.clone().requires_grad_()
    found = logits(x)
    log_density = log_densities(found, state)[name]
    log_p = found.log_softmax(dim=-1)
    each = torch.stack([log_p[:, 0, 1], log_p[:, 2, 0]], dim=1)
    (grad,) = torch.autograd.grad((log_density + ((weights - 1) * each).sum(dim=1)).sum(), x)
    return grad, log_density.detach(), each.sum(dim=1).detach()


@pytest.mark.parametrize("guidance", [1.0, 3.0])
def test_a_step_is_the_gradient_of_the_algorithms_target(model: JointEnergyModel, name: str, guidance: float) -> None:
    """Algorithms 2 and 3 without noise, against autograd of the model's own formulas; guidance adds log p(y_c | x)."""
    sampler = make_sampler(name, model, KernelSettings(guidance=guidance))
    state = sampler.init(noise(3) * 0.5 + 0.25, CONDITION.tensor(3), generator(0))
    after, info = sampler.step(state, Step(0.0, 0.05, 0.0, 0.0), generator(1))
    weights = torch.full((3, 2), guidance)
    grad, log_density, log_p = target_gradient(model.logits, name, after, state.x, weights)
    torch.testing.assert_close(after.x, state.x + 0.05 * grad, atol=1e-6, rtol=0)
    torch.testing.assert_close(info.energy, -log_density)
    torch.testing.assert_close(info.grad_norm, grad.flatten(1).norm(dim=1))
    torch.testing.assert_close(info.log_p_condition, log_p)
    torch.testing.assert_close(info.probabilities, model.predict(state.x))
    assert torch.equal(info.denoised, state.x)  # without a level a chain heads nowhere but where it is


@pytest.mark.parametrize("guidance", [1.0, 3.0])
@pytest.mark.parametrize("sigma", [0.1, 2.0])
def test_with_levels_it_is_the_same_at_the_level(
    pushed: ResidualModel, name: str, guidance: float, sigma: float
) -> None:
    """And x + sigma^2 gradient is where the chain is heading."""
    sampler = make_sampler(name, pushed, KernelSettings(guidance=guidance, clamp=False))
    x = pushed.encode(noise(3)) + sigma * torch.randn(3, 3, 32, 32, generator=generator(3))
    state = sampler.init(x, CONDITION.tensor(3), generator(0), level=sigma)
    after, info = sampler.step(state, Step(sigma, 0.1 * sigma**2, 0.0, sigma), generator(1))
    weights = torch.full((3, 2), guidance)
    grad, log_density, log_p = target_gradient(pushed.at(sigma).logits, name, after, x, weights)
    torch.testing.assert_close(after.x, x + 0.1 * sigma**2 * grad, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(info.denoised, x + sigma**2 * grad, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(info.energy, -log_density)
    torch.testing.assert_close(info.log_p_condition, log_p, atol=1e-3, rtol=1e-3)
    # Where the chain is heading is a picture, however strong the guidance: what lies beyond is cut off.
    clamped = make_sampler(name, pushed, KernelSettings(guidance=guidance))
    moved, info = clamped.step(state, Step(sigma, 0.1 * sigma**2, 0.0, sigma), generator(1))
    kept = (x + sigma**2 * grad).clamp(-1, 1)
    torch.testing.assert_close(info.denoised, kept, atol=1e-4, rtol=0)
    torch.testing.assert_close(moved.x, x + 0.1 * (kept - x), atol=1e-4, rtol=0)


def test_guidance_acts_within_its_range_of_levels(pushed: ResidualModel, name: str) -> None:
    x = 0.5 * pushed.encode(noise(2))

    def heading(sigma: float, **settings: float) -> Tensor:
        sampler = make_sampler(name, pushed, KernelSettings(clamp=False, **settings))
        state = sampler.init(x, CONDITION.tensor(2), generator(0), level=sigma)
        return sampler.step(state, Step(sigma, sigma**2, 0.0, 0.0), generator(1))[1].denoised

    bounds = {"guidance": 5.0, "guidance_from": 0.3, "guidance_to": 3.0}
    for sigma, guided in ((0.1, False), (0.3, True), (1.0, True), (3.0, True), (3.5, False)):
        plain, everywhere = heading(sigma), heading(sigma, guidance=5.0)
        assert not torch.allclose(plain, everywhere, atol=1e-5)
        assert torch.equal(heading(sigma, **bounds), everywhere if guided else plain), sigma


def test_guidance_pushes_on_until_the_margin(pushed: ResidualModel, name: str) -> None:
    """A margin m turns the guided log p(y_k | x) = log sigmoid(d) into log sigmoid(d - m); without guidance it is
    nothing, and what a step tells of the condition stays the model's own."""
    sigma, margin, x = 0.5, 2.5, 0.5 * pushed.encode(noise(2))

    def take(**settings: float) -> StepInfo:
        sampler = make_sampler(name, pushed, KernelSettings(clamp=False, **settings))
        state = sampler.init(x, CONDITION.tensor(2), generator(0), level=sigma)
        return sampler.step(state, Step(sigma, 0.1, 0.0, sigma), generator(1))[1]

    seen = x.clone().requires_grad_()
    logits, asked = pushed.at(sigma).logits(seen), CONDITION.tensor(2)
    toward = (logits[..., 1] - logits[..., 0]) * torch.where(asked == 1, 1, -1)
    rarer = torch.nn.functional.logsigmoid(toward - margin)[asked != FREE]
    (pull,) = torch.autograd.grad(rarer.sum(), seen)
    plain, guided = take(), take(guidance=4.0, margin=margin)
    torch.testing.assert_close(guided.denoised - plain.denoised, 3 * sigma**2 * pull, atol=1e-4, rtol=1e-3)
    assert torch.equal(take(margin=margin).denoised, plain.denoised)
    assert torch.equal(guided.log_p_condition, plain.log_p_condition)
    assert not torch.allclose(guided.denoised, take(guidance=4.0).denoised, atol=1e-5)


def test_every_attribute_may_have_a_strength_of_its_own(pushed: ResidualModel, name: str) -> None:
    """Guidance 4 at strengths 1 and 0.5 weighs the two asked attributes 4 and 2; a row per chain says it for each."""
    sigma, x = 0.5, 0.5 * pushed.encode(noise(2))
    strengths = torch.ones(2, K)
    strengths[:, 2] = torch.tensor([0.5, 2.0])
    for given, weights in (
        (strengths[0], torch.tensor([[4.0, 2.0]] * 2)),
        (strengths, torch.tensor([[4.0, 2.0], [4.0, 8.0]])),
    ):
        sampler = make_sampler(name, pushed, KernelSettings(guidance=4.0, strengths=given, clamp=False))
        state = sampler.init(x, CONDITION.tensor(2), generator(0), level=sigma)
        after, info = sampler.step(state, Step(sigma, 0.1, 0.0, sigma), generator(1))
        grad, *_ = target_gradient(pushed.at(sigma).logits, name, after, x, weights)
        torch.testing.assert_close(info.denoised, x + sigma**2 * grad, atol=1e-4, rtol=1e-4)


def test_settings_do_what_they_say(tiny_bundle: Bundle, name: str) -> None:
    model = tiny_bundle.model
    state = make_sampler(name, model).init(noise(2), CONDITION.tensor(2), generator(0))

    def move(grad_coef: float = 1.0, noise_std: float = 0.0, **changes) -> Tensor:
        sampler = make_sampler(name, model, KernelSettings(**changes))
        return sampler.langevin(state, Step(0.0, grad_coef, noise_std, 0.0), generator(0))[0].x

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
    noisy = move(0.0, 0.1, clamp=False, preconditioner=matrix)
    torch.testing.assert_close(noisy, state.x + 0.1 * matrix.apply_sqrt(xi), atol=1e-6, rtol=0)
    assert move(0.0, 2.0).min() == 0
    assert move(0.0, 2.0).max() == 1


def test_a_step_adds_the_noise_that_its_schedule_says(pushed: ResidualModel, name: str) -> None:
    """With levels too, and beyond the range of pictures: noise is what a level is."""
    sampler = make_sampler(name, pushed)
    state = sampler.init(pushed.encode(noise(2)), CONDITION.tensor(2), generator(0), level=2.0)
    xi = torch.randn(state.x.shape, generator=generator(1))
    still, _ = sampler.langevin(state, Step(2.0, 0.0, 0.0, 2.0), generator(1))
    assert torch.equal(still.x, state.x)
    shaken, _ = sampler.langevin(state, Step(2.0, 0.0, 1.5, 2.0), generator(1))
    torch.testing.assert_close(shaken.x, state.x + 1.5 * xi)
    assert shaken.x.abs().max() > 3


def test_diverged_chains_are_told_apart(model: JointEnergyModel, name: str) -> None:
    sampler = make_sampler(name, model)
    x = noise(3)
    x[1] = (x[1] > 0.5).float()  # every pixel in a corner of the cube
    state = sampler.init(x, CONDITION.tensor(3), generator(0))
    state.x[2, 0, 0, 0] = torch.nan
    _, info = sampler.step(state, PAPER_STEP, generator(0))
    assert info.diverged.tolist() == [False, True, True]
    assert saturated(x).tolist() == [False, True, False]


def test_with_levels_white_is_a_picture_and_no_number_is_not(pushed: ResidualModel, name: str) -> None:
    sampler = make_sampler(name, pushed)
    x = pushed.encode(noise(3))
    x[1] = 1.0  # the white around a shoe
    x[2, 0, 0, 0] = torch.nan
    state = sampler.init(x, CONDITION.tensor(3), generator(0), level=0.5)
    _, info = sampler.step(state, Step(0.5, 0.1, 0.1, 0.5), generator(0))
    assert info.diverged.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("numbers", "temperature"),
    [((1.0, 0.001), 5e-7), ((1.0, 0.01), 5e-5), ((0.0, 0.001), float("inf"))],
)
def test_the_temperature_that_the_numbers_imply(numbers: tuple[float, float], temperature: float) -> None:
    """The paper's 1 and 0.001 imply a temperature of eps^2 / 2 = 5e-7 (Eq. 3)."""
    assert constant(*numbers, 1)[0].temperature == pytest.approx(temperature)


def test_the_differentiable_step_is_the_step(model: JointEnergyModel, name: str) -> None:
    sampler = make_sampler(name, model, KernelSettings(grad_clamp=0.01))
    state = sampler.init(noise(2), CONDITION.tensor(2), generator(0))
    plain, _ = sampler.langevin(state, PAPER_STEP, generator(1))
    assert torch.equal(sampler.differentiable_langevin(state, PAPER_STEP, generator(1)).detach(), plain.x)


def test_labels_of_a_finished_chain_are_drawn_at_the_lowest_level(pushed: ResidualModel, name: str) -> None:
    """A picture has no noise; p(y | x) of it is what `predict` says."""
    sampler, images = make_sampler(name, pushed), noise(2)
    state = sampler.init(pushed.encode(images), CONDITION.tensor(2), generator(0))
    after, info = sampler.resample_labels(state, generator(1))
    torch.testing.assert_close(info.probabilities, pushed.predict(images))
    xi = torch.rand(2, K, generator=generator(1))
    expected = torch.where(state.condition == FREE, (xi < info.probabilities).long(), state.condition)
    assert torch.equal(after.y, expected)


def test_a_lift_adds_the_noise_that_is_missing(pushed: ResidualModel) -> None:
    sampler = Resampling(pushed)
    state = sampler.init(pushed.encode(noise(2)), CONDITION.tensor(2), generator(0), level=3.0)
    lifted = lift(state, 5.0, generator(1))
    xi = torch.randn(state.x.shape, generator=generator(1))
    torch.testing.assert_close(lifted.x, state.x + 4.0 * xi)  # 3 and 4 make 5
    assert (lifted.level, lifted.step) == (5.0, state.step)
    assert torch.equal(lifted.y, state.y)
    assert torch.equal(lift(state, 3.0, generator(1)).x, state.x)
    with pytest.raises(ValueError, match="stand at noise level 3; they cannot be lifted to 2"):
        lift(state, 2.0, generator(1))


def bad_calls(model: JointEnergyModel) -> dict:
    sampler, x, asked, g = Resampling(model), noise(2), CONDITION.tensor(2), generator(0)
    return {
        "no such sampler": (lambda: make_sampler("gibbs", model), "'gibbs'; choose resampling or marginalizing"),
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
        "coefficient": (lambda: constant(-1.0, 0.1, 1), r"grad_coef is -1\.0"),
        "coefficient nan": (lambda: constant(float("nan"), 0.1, 1), "grad_coef is nan"),
        "noise": (lambda: constant(1.0, float("inf"), 1), "noise_std is inf"),
        "guidance": (lambda: KernelSettings(guidance="strong"), "guidance is 'strong'"),
        "guidance nan": (lambda: KernelSettings(guidance=float("nan")), "guidance is nan"),
        "guidance inf": (lambda: KernelSettings(guidance=float("inf")), "guidance is inf"),
        "guidance from below 0": (lambda: KernelSettings(guidance_from=-1.0), r"guidance_from is -1\.0"),
        "guidance to nowhere": (lambda: KernelSettings(guidance_to=float("nan")), "guidance_to is nan"),
        "guidance at no level": (
            lambda: KernelSettings(guidance_from=3, guidance_to=1),
            "from 3 to 1, which is at no level",
        ),
        "margin": (lambda: KernelSettings(margin=-0.5), r"margin is -0\.5"),
        "clamp": (lambda: KernelSettings(grad_clamp=0), "grad_clamp is 0"),
        "clamp of words": (lambda: KernelSettings(grad_clamp="1"), "grad_clamp is '1'"),
        "sweep": (lambda: KernelSettings(steps_per_sweep=0), "steps_per_sweep is 0"),
        "half a sweep": (lambda: KernelSettings(steps_per_sweep=1.5), "steps_per_sweep is 1.5"),
        "precision": (lambda: KernelSettings(precision="half"), "precision is 'half'; choose float32 or bfloat16"),
    }


@pytest.mark.parametrize("case", bad_calls(PaperModel(TINY_NAMES, 32, 1)))
def test_bad_input_is_refused_by_value(model: JointEnergyModel, case: str) -> None:
    call, message = bad_calls(model)[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_log_prob_from_logits_is_what_samplers_move_under(model: JointEnergyModel) -> None:
    x, y = noise(2), torch.tensor([[0, 1, 0, 1, 0, 1]] * 2)
    torch.testing.assert_close(log_prob_from_logits(model.logits(x), y), model.log_prob(x, y))
