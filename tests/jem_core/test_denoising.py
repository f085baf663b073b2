"""The objective `denoising` learns the true gradient and probabilities; the one formula holds at every level."""

import copy
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from jem_core.condition import FREE
from jem_core.config import make_config
from jem_core.data.dataset import Dataset
from jem_core.gaussian import LowRankGaussian
from jem_core.model import JointEnergyModel, log_prob_from_logits
from jem_core.networks.residual import ResidualModel
from jem_core.objectives import Setup, find_objective
from jem_core.objectives.denoising import HIGHEST, LOWEST, Denoising, denoise, weigh
from jem_core.random import generator
from tests.jem_core.blurred import BlurredModel

TRUTH = BlurredModel()
NAMES = ("A", "B", "C")
CONFIG = {
    "objective": "denoising",
    "network": "residual",
    "cross_entropy_weight": 0.5,
    "noise_mean": -1.8,  # sigma 0.1 is the hardest of the three levels
    "noise_spread": 1.0,
}


class Dense(nn.Module):
    """g and d of twelve values: the residual network's place, taken by dense layers."""

    def __init__(self, attributes: int, width: int = 96) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(14, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1 + attributes)
        )

    def forward(self, u: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        level = sigma.log()[:, None]
        out = self.layers(torch.cat([u.flatten(1), level / 4, torch.tanh(level)], dim=1))
        return out[:, 0], out[:, 1:]


class SmallModel(ResidualModel):
    """The joint energy over noise levels for images of 2 x 2 pixels."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.names, self.image_size, self.fold = NAMES, TRUTH.image_size, 1
        self.net = Dense(len(NAMES))


def objective_for(model: JointEnergyModel, labels: Tensor, seed: int = 0, **changes: object) -> Denoising:
    size = model.image_size
    images = torch.randint(0, 256, (20, 3, size, size), dtype=torch.uint8, generator=generator(seed))
    gaussian = LowRankGaussian.fit(images, torch.zeros(20, labels.shape[1]), rank=2)
    setup = Setup(make_config(CONFIG | changes), model, gaussian, labels, generator(seed), generator(seed + 1))
    found = find_objective("denoising")(setup)
    assert isinstance(found, Denoising)
    return found


@pytest.fixture(scope="module")
def trained() -> SmallModel:
    """About half a minute of training on data that are known in closed form."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = SmallModel()
    free, draws = torch.full((1024, 3), FREE), generator(7)
    objective = objective_for(model, TRUTH.sample(free, draws)[1])
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer, iterations = torch.optim.Adam(model.parameters(), lr=4e-3, betas=(0.9, 0.99)), 5000
    for iteration in range(iterations):
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * (1 - iteration / iterations)
        x, y = TRUTH.sample(free, draws)
        optimizer.zero_grad(set_to_none=True)
        objective.loss(x, y, iteration).value.backward()
        optimizer.step()
        weights = [value.detach() for value in model.parameters()]
        torch._foreach_lerp_(list(average.parameters()), weights, 0.006)
    return average


@pytest.mark.parametrize("sigma", [0.1, 0.5, 2.0])
def test_the_learned_gradient_and_probabilities_are_the_true_ones(trained: SmallModel, sigma: float) -> None:
    draws = generator(11)
    for asked in ((FREE, FREE, FREE), (1, FREE, 0)):
        condition = torch.tensor(asked).expand(2000, -1)
        x, _ = TRUTH.sample(condition, draws)
        x = x + sigma * torch.randn(x.shape, generator=draws)
        found, expected = (gradient(model, x, sigma, condition) for model in (trained, TRUTH))
        off = (found - expected).flatten(1).norm(dim=1) / expected.flatten(1).norm(dim=1)
        assert off.mean() < 0.05, f"off by {off.mean():.3f} at {sigma} given {asked}"
        p, truth = (model.at(sigma).logits(x).softmax(dim=-1)[..., 1] for model in (trained, TRUTH))
        assert (p - truth).abs().mean() < 0.02


def gradient(model: nn.Module, x: Tensor, sigma: float, condition: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    log_prob = log_prob_from_logits(model.at(sigma).logits(x), condition, observed=condition != FREE)
    return torch.autograd.grad(log_prob.sum(), x)[0].detach()


@pytest.mark.parametrize("sigma", [0.05, 1.0, 8.0])
def test_summing_labels_out_is_enumeration(sigma: float) -> None:
    """log p~(x) = log of the sum of exp f(x, y) over all 2^K labels, and so is its gradient."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = ResidualModel(NAMES, 32, widths=(4, 8), blocks=(1, 1), attention=8).double()
        for weight in model.parameters():  # layers that begin at zero would hide mistakes
            nn.init.normal_(weight, std=0.1)
    x = torch.randn(2, 3, 32, 32, dtype=torch.float64, generator=generator(0)).requires_grad_()
    logits = model.at(torch.full((2,), sigma, dtype=torch.float64)).logits(x)
    labels = torch.tensor(list(product((0, 1), repeat=3)))
    joint = torch.stack([log_prob_from_logits(logits, y.expand(2, -1)) for y in labels])
    for found, expected in ((log_prob_from_logits(logits), joint.logsumexp(dim=0)),):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-6)
        grads = [torch.autograd.grad(value.sum(), x, retain_graph=True)[0] for value in (found, expected)]
        torch.testing.assert_close(grads[0], grads[1], rtol=1e-6, atol=1e-8)
    base, differences = model.energies(x, torch.full((2,), sigma, dtype=torch.float64))
    torch.testing.assert_close(log_prob_from_logits(logits), base, rtol=1e-9, atol=1e-6)
    torch.testing.assert_close(logits.softmax(dim=-1)[..., 1], differences.sigmoid(), rtol=1e-6, atol=1e-9)


def test_the_scaling_is_edms() -> None:
    """With g = 0 the denoised image is c_skip x, and the weight makes its loss about 1 on data of spread 0.5."""
    model = SmallModel()
    for weight in model.net.layers[-1].parameters():
        nn.init.zeros_(weight)
    draws = generator(0)
    clean = 0.5 * torch.randn(4000, 3, 2, 2, generator=draws)
    for level in (0.05, 0.5, 5.0):
        sigma = torch.full((len(clean),), level)
        noisy = clean + level * torch.randn(clean.shape, generator=draws)
        denoised, _ = denoise(model, noisy, sigma, torch.full((len(clean), 3), FREE), differentiable=False)
        torch.testing.assert_close(denoised, noisy * 0.25 / (level**2 + 0.25))
        assert (weigh(sigma)[0] * (denoised - clean) ** 2).mean().item() == pytest.approx(1, abs=0.05)


def test_a_batch_sees_all_levels_evenly() -> None:
    objective = objective_for(SmallModel(), torch.zeros(4, 3, dtype=torch.int64), noise_mean=0.3, noise_spread=1.5)
    drawn = objective.draw_levels(64, torch.device("cpu"))
    assert drawn.min() >= LOWEST
    assert drawn.max() <= HIGHEST
    assert (drawn.sort().values == drawn).all()  # one from each 64th
    assert drawn.log().median().item() == pytest.approx(0.3, abs=0.1)
    assert not torch.equal(drawn, objective.draw_levels(64, torch.device("cpu")))


def test_conditions_are_free_full_or_a_few(tiny_dataset: Dataset) -> None:
    labels = torch.from_numpy(tiny_dataset.labels).long().repeat(5, 1)
    labels[0] = torch.tensor([1, FREE, 0, FREE, 1, 0])
    shares = {"free_share": 0.3, "full_share": 0.2, "max_conditions": 2}
    objective = objective_for(ResidualModel(tiny_dataset.names, 32, (4, 8), (0, 0)), labels, **shares)
    conditions = objective.conditions(labels)
    asked = (conditions != FREE).sum(dim=1)
    known = (labels != FREE).sum(dim=1)
    assert ((conditions == FREE) | (conditions == labels)).all()
    assert (asked == 0).float().mean().item() == pytest.approx(0.3, abs=0.05)
    assert (asked == known).float().mean().item() == pytest.approx(0.2, abs=0.05)
    assert ((asked <= 2) | (asked == known)).all()


def test_unknown_labels_are_left_out_of_both_terms() -> None:
    """A row without a label counts as one whose label nobody asked for: its value cannot matter."""
    model = SmallModel()
    x = torch.rand(16, 3, 2, 2, generator=generator(0))
    y = torch.randint(0, 2, (16, 3), generator=generator(1))
    hidden = y.clone()
    hidden[:, 1] = FREE
    full = objective_for(model, y, full_share=1.0, free_share=0.0)
    loss = full.loss(x, hidden, 0)
    logits = model.net.layers[-1]
    loss.value.backward()
    assert logits.weight.grad[2].abs().max() < 1e-7  # the unknown attribute's difference has no say
    assert logits.weight.grad[1].abs().max() > 0


def test_pictures_are_mirrored_only_where_the_data_allow_it(tiny_dataset: Dataset) -> None:
    images, labels = tiny_dataset.tensors(range(40))
    model = ResidualModel(tiny_dataset.names, 32, (4, 8), (0, 0))
    straight = model.encode((images.float() + 0.5) / 256)

    def mirrored(allowed: bool, wanted: bool) -> int:
        objective = objective_for(model, labels, data_flip=wanted)
        objective.flips = allowed and wanted
        x = objective.transform(images)
        near = (x - straight).abs().mean(dim=(1, 2, 3)) < (x - straight.flip(-1)).abs().mean(dim=(1, 2, 3))
        return int((~near).sum())

    assert mirrored(False, True) == mirrored(True, False) == 0
    assert 5 < mirrored(True, True) < 35
