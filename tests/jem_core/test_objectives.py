"""The losses: their gradients are those of the likelihood, enumerated and integrated; the KL term, done by hand."""

import copy
from itertools import product
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from jem_core.condition import FREE
from jem_core.model import log_prob_from_logits
from jem_core.networks.paper import PaperModel
from jem_core.objectives.base import accuracy, cross_entropy, frequencies, random_conditions, random_counts
from jem_core.objectives.contrast import Weights, contrastive_loss, kl_loss
from jem_core.objectives.supervised import Supervised
from jem_core.random import generator
from jem_core.samplers import ChainState, KernelSettings, Resampling, Sampler
from jem_core.schedules import Step
from tests.jem_core.closed_form import ClosedFormModel, NoLevels

K = 3
GRID = torch.linspace(0.05, 0.95, 9, dtype=torch.float64).view(-1, 1, 1, 1).expand(-1, 3, 1, 1)
JOINT = list(product(range(len(GRID)), product((0, 1), repeat=K)))  # every (image, labels) of the small world


class GridModel(NoLevels, nn.Module):
    """A small net over one pixel: the world has nine images, so every sum can be taken."""

    image_size, num_attributes = 1, K

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.net = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 2 * K)).double()
        for weight in self.parameters():
            weight.data *= 2.5

    def logits(self, x: Tensor) -> Tensor:
        return self.net(x.flatten(1)).view(-1, K, 2)

    forward = logits


def gradient(model: nn.Module, loss: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True))


def log_p_of_all(model: nn.Module, condition: Tensor) -> Tensor:
    """log p(x, y | y_c) of every image and label of the small world, -inf where y disagrees with the condition."""
    logits = model.logits(GRID)
    scores = [logits[i, range(K), list(y)].sum() + (0.0 if agrees(condition, y) else -torch.inf) for i, y in JOINT]
    return torch.stack(scores).log_softmax(dim=0)


def agrees(condition: Tensor, y: tuple[int, ...]) -> bool:
    return bool(((condition == FREE) | (condition == torch.tensor(y))).all())


def log_normalizer(model: nn.Module, condition: Tensor) -> Tensor:
    """log of the sum of exp f(x, y) over all images and all labels that agree with the condition."""
    observed = (condition != FREE).expand(len(GRID), -1)
    logits = model.logits(GRID)
    return log_prob_from_logits(logits, condition.expand(len(GRID), -1), observed).logsumexp(dim=0)


DATA = torch.tensor([0, 2, 3, 7, 8, 8])
LABELS = torch.tensor([[0, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1], [0, 1, 1]])
PARTLY = LABELS.masked_fill(
    torch.tensor([[0, 1, 0], [0, 0, 0], [1, 1, 1], [1, 0, 1], [0, 0, 1], [1, 0, 0]]).bool(), FREE
)
NOTHING = torch.full_like(LABELS, FREE)
ASKED = torch.tensor([[FREE, 1, FREE], [1, FREE, 0], [FREE] * 3, [0, 0, 1], [FREE, FREE, 1], [0, FREE, FREE]])


@pytest.mark.parametrize("negative_labels", ["sampled", "marginalized"])
@pytest.mark.parametrize(
    ("labels", "conditions"),
    [(LABELS, NOTHING), (PARTLY, NOTHING), (LABELS, ASKED), (PARTLY, torch.where(PARTLY == FREE, FREE, ASKED))],
    ids=["joint", "joint, unknown labels", "semi-conditional", "semi-conditional, unknown labels"],
)
def test_the_gradient_is_the_likelihoods(labels: Tensor, conditions: Tensor, negative_labels: str) -> None:
    """The expectation over chains is taken exactly: every state of the world is a chain, weighted by its probability.

    Joint: - grad of mean log p(x, y_known), Eq. 6. Semi-conditional: - grad of mean log p(x | y_c) + log p(y | x).
    """
    model, x = GridModel(), GRID[DATA]
    loss = torch.zeros((), dtype=torch.float64)
    kinds, counts = conditions.unique(dim=0, return_counts=True)
    for condition, count in zip(kinds, counts.tolist(), strict=True):  # chains carry the conditions that the data carry
        for weight, (i, y) in zip(log_p_of_all(model, condition).exp().detach(), JOINT, strict=True):
            if weight > 0:
                chain = ChainState(GRID[i : i + 1], torch.tensor([y]), condition[None], 1)
                use = torch.ones(1, dtype=torch.bool)
                part = contrastive_loss(model, x, labels, conditions, chain, use, negative_labels).loss
                loss = loss + weight * count / len(conditions) * part
    logits = model.logits(x)
    positive = log_prob_from_logits(logits, conditions, conditions != FREE)
    normalizer = torch.stack([log_normalizer(model, condition) for condition in conditions])
    likelihood = (positive - normalizer).mean() - cross_entropy(logits, labels)
    if (conditions == FREE).all():  # then it is log p(x, y_known), written as one
        whole = log_prob_from_logits(logits, labels, labels != FREE).mean() - normalizer[0]
        torch.testing.assert_close(likelihood, whole)
    for ours, theirs in zip(gradient(model, loss), gradient(model, -likelihood), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-7)


def chain_gradients(model: ClosedFormModel, chains: ChainState, x: Tensor, y: Tensor, parts: int) -> list[Tensor]:
    """The loss's gradient for each of `parts` groups of independent chains: (parts, *weight)."""
    found = []
    for rows in torch.arange(len(chains.x)).chunk(parts):
        group = ChainState(chains.x[rows], chains.y[rows], chains.condition[rows], chains.step)
        use = torch.ones(len(rows), dtype=torch.bool)
        found.append(gradient(model, contrastive_loss(model, x, y, torch.full_like(y, FREE), group, use).loss))
    return [torch.stack(grads) for grads in zip(*found, strict=True)]


def test_chains_of_the_sampler_give_the_integrated_gradient() -> None:
    """Algorithm 1 and the loss together: 1,600 chains against log Z in closed form, within 4.5 standard errors."""
    model, n = ClosedFormModel(), 1600
    noise = 0.035
    sampler, step = Resampling(model, KernelSettings(clamp=False)), Step(0.0, noise**2 / 2, noise, 0.0)
    free, randomness = torch.full((n, K), FREE), generator(0)
    state = sampler.init(torch.rand(n, 3, 2, 2, generator=randomness), free, randomness)
    for _ in range(250):
        state, _ = sampler.step(state, step, randomness)
    x, y = torch.rand(40, 3, 2, 2, generator=randomness), torch.randint(0, 2, (40, K), generator=randomness)
    truth = gradient(
        model, model.log_normalizer(torch.full((K,), FREE)) - log_prob_from_logits(model.logits(x), y).mean()
    )

    def worst(chains: ChainState) -> float:
        groups = chain_gradients(model, chains, x, y, parts=40)
        return max(
            ((group.mean(0) - exact).abs() / (group.std(0) / 40**0.5 + 1e-9)).max().item()
            for group, exact in zip(groups, truth, strict=True)
        )

    assert worst(state) < 4.5
    assert worst(state._replace(y=1 - state.y)) > 10  # labels that do not belong to their images
    assert worst(state._replace(x=torch.rand(n, 3, 2, 2, generator=randomness))) > 10  # images that are no samples


def test_given_the_chains_jem_and_the_marginalized_joint_are_one() -> None:
    model, x = GridModel(), GRID[DATA]
    chains = ChainState(GRID[1:5], torch.zeros(4, K, dtype=torch.int64), torch.full((4, K), FREE), 1)
    parts = contrastive_loss(model, x, LABELS, NOTHING, chains, torch.ones(4, dtype=torch.bool), "marginalized")
    jem = log_prob_from_logits(model.logits(GRID[1:5])).mean() - log_prob_from_logits(model.logits(x)).mean()
    torch.testing.assert_close(parts.loss, jem + cross_entropy(model.logits(x), LABELS))


def test_stuck_chains_are_left_out() -> None:
    model, x = GridModel(), GRID[DATA]
    chains = ChainState(GRID[1:5], LABELS[:4], NOTHING[:4], 1)
    use = torch.tensor([True, False, True, False])
    left = ChainState(GRID[1:5][use], LABELS[:4][use], NOTHING[:2], 1)
    parts = contrastive_loss(model, x, LABELS, NOTHING, chains, use)
    expected = contrastive_loss(model, x, LABELS, NOTHING, left, torch.ones(2, dtype=torch.bool))
    torch.testing.assert_close(parts.loss, expected.loss)
    nobody = contrastive_loss(model, x, LABELS, NOTHING, chains, torch.zeros(4, dtype=torch.bool))
    torch.testing.assert_close(nobody.loss, nobody.cross_entropy)  # no contrast: the classifier goes on alone


def test_weights_of_the_parts() -> None:
    model, x = GridModel(), GRID[DATA]
    chains, use = ChainState(GRID[1:5], LABELS[:4], NOTHING[:4], 1), torch.ones(4, dtype=torch.bool)
    plain = contrastive_loss(model, x, LABELS, NOTHING, chains, use)
    heavy = contrastive_loss(model, x, LABELS, NOTHING, chains, use, weights=Weights(cross_entropy=4.0))
    torch.testing.assert_close(heavy.loss - plain.loss, 3 * plain.cross_entropy)
    waiting = contrastive_loss(model, x, LABELS, NOTHING, chains, use, weights=Weights(contrast=0.25))
    torch.testing.assert_close(waiting.loss - plain.cross_entropy, 0.25 * (plain.loss - plain.cross_entropy))
    penalized = contrastive_loss(model, x, LABELS, NOTHING, chains, use, weights=Weights(energy_penalty=0.1))
    norm = (
        plain.data_log_prob.square().mean() + log_prob_from_logits(model.logits(GRID[1:5]), LABELS[:4]).square().mean()
    )
    torch.testing.assert_close(penalized.loss - plain.loss, 0.1 * norm)


def test_cross_entropy_sums_over_known_labels() -> None:
    model = GridModel()
    logits = model.logits(GRID[DATA])
    log_p = logits.log_softmax(dim=-1)
    expected = -sum(log_p[n, k, v] for n, row in enumerate(PARTLY.tolist()) for k, v in enumerate(row) if v >= 0) / 6
    torch.testing.assert_close(cross_entropy(logits, PARTLY), expected)
    assert cross_entropy(logits, NOTHING) == 0
    right = [
        (log_p[n, k, 1] > log_p[n, k, 0]).item() == v for n, r in enumerate(PARTLY) for k, v in enumerate(r) if v >= 0
    ]
    share = pytest.approx(sum(right) / len(right))
    assert accuracy(logits, PARTLY).item() == share
    supervised = Supervised(SimpleNamespace(config=None, model=model)).loss(GRID[DATA], PARTLY, 0)
    torch.testing.assert_close(supervised.value, expected)
    assert supervised.metrics == {"cross_entropy": pytest.approx(expected.item()), "accuracy": share}
    assert accuracy(logits, NOTHING) == 0


LAST = Step(0.0, 3.0, 0.01, 0.0)  # the step that the KL term runs through


@pytest.fixture
def chains() -> tuple[PaperModel, Sampler, ChainState]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = PaperModel("abc", image_size=32, width=2).double()
    for weight in model.parameters():  # the default weights are so small that an energy hardly has a slope
        weight.data *= 2.5
    sampler = Resampling(model)
    x = torch.rand(4, 3, 32, 32, generator=generator(0), dtype=torch.float64) * 0.8 + 0.1
    y = torch.tensor([[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1]])
    condition = torch.tensor([[0, FREE, FREE], [FREE] * 3, [FREE, 0, 1], [FREE, 1, FREE]])
    return model, sampler, ChainState(x, y, condition, 5)


@pytest.mark.parametrize("entropy_weight", [0.0, 0.3])
def test_the_kl_term_is_one_step_under_frozen_weights(chains: tuple, entropy_weight: float) -> None:
    """By hand: x + 3 grad f(x, y) + noise, its energy under a frozen copy, and the nearest of the other samples."""
    model, sampler, state = chains
    neighbours = torch.rand(6, 3, 32, 32, generator=generator(2), dtype=torch.float64)
    same = torch.zeros(4, 6, dtype=torch.bool)
    same[1, 2] = same[3, 0] = True
    ours = gradient(model, kl_loss(model, sampler, LAST, state, neighbours, same, generator(1), entropy_weight))

    def by_hand(last: nn.Module) -> Tensor:
        x = state.x.clone().requires_grad_()
        (grad,) = torch.autograd.grad(model.log_prob(x, state.y).sum(), x, create_graph=True)
        xi = torch.randn(x.shape, generator=generator(1))
        moved = (state.x + 3.0 * grad + 0.01 * xi).clamp(0, 1)
        loss = -last.log_prob(moved, state.condition, state.condition != FREE).mean()
        for n in range(4):
            others = [(moved[n] - neighbours[m]).norm() for m in range(6) if not same[n, m]]
            loss = loss - entropy_weight * torch.stack(others).min().log() / 4
        return loss

    frozen = copy.deepcopy(model).requires_grad_(False)
    for mine, theirs in zip(ours, gradient(model, by_hand(frozen)), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-8, rtol=1e-6)
    moving = gradient(model, by_hand(model))  # energy not held still: another gradient altogether
    assert any((a - b).abs().max() > 1e-3 for a, b in zip(ours, moving, strict=True))
    assert any(grad.abs().max() > 1e-3 for grad in ours)


def test_the_kl_term_flows_through_the_last_step_only(chains: tuple) -> None:
    """A chain whose image still hangs on earlier steps' graph gives the same gradient as one that does not."""
    model, sampler, state = chains
    nothing = torch.empty(0, 3, 32, 32, dtype=torch.float64), torch.empty(4, 0, dtype=torch.bool)
    earlier = sampler.differentiable_langevin(state, LAST, generator(3))
    assert earlier.requires_grad
    attached = kl_loss(model, sampler, LAST, state._replace(x=earlier), *nothing, generator(1), 0.3)
    detached = kl_loss(model, sampler, LAST, state._replace(x=earlier.detach()), *nothing, generator(1), 0.3)
    for a, b in zip(gradient(model, attached), gradient(model, detached), strict=True):
        assert torch.equal(a, b)


def test_a_chain_whose_only_neighbour_is_itself_has_no_entropy_term(chains: tuple) -> None:
    model, sampler, state = chains
    one = torch.rand(1, 3, 32, 32, generator=generator(2), dtype=torch.float64)
    alone = kl_loss(model, sampler, LAST, state, one, torch.ones(4, 1, dtype=torch.bool), generator(1), 0.3)
    without = kl_loss(model, sampler, LAST, state, one, torch.zeros(4, 1, dtype=torch.bool), generator(1), 0.0)
    torch.testing.assert_close(alone, without)


def test_random_conditions_ask_for_known_labels_only() -> None:
    labels = torch.randint(-1, 2, (4000, 8), generator=generator(0))
    how_many = random_counts(4000, 0, 4, generator(2))
    asked = random_conditions(labels, torch.full((8,), 0.3), how_many, generator(1))
    chosen = asked != FREE
    assert torch.equal(asked[chosen], labels[chosen])
    assert (labels[chosen] != FREE).all()
    known = (labels != FREE).sum(dim=1)
    assert torch.equal(chosen.sum(dim=1), how_many[:, 0].minimum(known))  # as many as asked for, or all there are
    complete = known >= 4
    counts = chosen[complete].sum(dim=1).bincount(minlength=5).float()
    expected = complete.sum() / 5  # 0 to 4 attributes, each equally often
    assert ((counts - expected).abs() < 4 * (expected * 0.8).sqrt()).all()


def test_rare_values_are_asked_for_more_often() -> None:
    """Of two attributes with shares 0.1 and 0.4 the rarer is picked with odds 10 to 2.5."""
    labels = torch.ones(20_000, 2, dtype=torch.int64)
    asked = random_conditions(labels, torch.tensor([0.1, 0.4]), random_counts(20_000, 0, 1, generator(1)), generator(0))
    one = (asked != FREE).sum(dim=1) == 1
    share = (asked[one, 0] == 1).float().mean().item()
    assert share == pytest.approx(0.8, abs=4 * (0.16 / one.sum().item()) ** 0.5)


def test_frequencies_are_shares_of_the_known_labels() -> None:
    labels = torch.tensor([[1, 0, FREE], [0, FREE, FREE], [1, 0, FREE], [1, 1, FREE]])
    assert frequencies(labels).tolist() == pytest.approx([0.75, 1 / 3, 0.0])
