"""The network and its energies: exact against enumeration, and closed to bad input."""

from collections.abc import Iterator
from itertools import product

import pytest
import torch
from torch import Tensor

from jem_core.condition import FREE
from jem_core.model import JointEnergyModel, check_images, check_weights, log_prob_from_logits
from jem_core.networks import build_network
from jem_core.networks.paper import PaperModel, init_weights


def small_model(k: int, dtype: torch.dtype = torch.float32) -> JointEnergyModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(k)
        model = PaperModel([f"a{i}" for i in range(k)], image_size=32, width=4)
        for weight in model.parameters():  # the default weights give logits near 0, where every formula agrees
            weight.data *= 1.8
    return model.to(dtype)


def images(n: int = 2, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.rand(n, 3, 32, 32, generator=torch.Generator().manual_seed(1), dtype=dtype)


def enumerated(model: JointEnergyModel, x: Tensor, condition: Tensor) -> Tensor:
    """log of the sum of exp f(x, y) over every y that agrees with the condition, one y at a time."""
    logits, terms = model.logits(x), []
    for values in product((0, 1), repeat=model.num_attributes):
        y = torch.tensor(values)
        if ((condition == FREE) | (condition == y)).all():
            terms.append(sum(logits[:, k, y_k] for k, y_k in enumerate(values)))
    return torch.stack(terms).logsumexp(dim=0)


def conditions(k: int) -> Iterator[Tensor]:
    """Nothing asked, everything asked, and two parts."""
    yield torch.full((k,), FREE)
    yield torch.arange(k) % 2
    yield torch.tensor([1, FREE, 0] * k)[:k]
    yield torch.tensor([FREE, 0, FREE, 1] * k)[:k]


@pytest.mark.parametrize("k", range(1, 9))
def test_log_prob_and_its_gradients_equal_enumeration(k: int) -> None:
    model = small_model(k)
    for condition in conditions(k):
        x = images().requires_grad_()
        y = condition.expand(2, -1).contiguous()
        values = model.log_prob(x, y, y != FREE)
        truth = enumerated(model, x, condition)
        torch.testing.assert_close(values, truth, atol=1e-5, rtol=1e-5)
        for target in (x, *model.parameters()):
            (ours,) = torch.autograd.grad(values.sum(), target, retain_graph=True)
            (theirs,) = torch.autograd.grad(truth.sum(), target, retain_graph=True)
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("k", [1, 5, 8])
def test_the_three_names_of_the_formula(k: int) -> None:
    """No labels is nothing observed; labels without a mask are all observed."""
    model, x = small_model(k, torch.float64), images(dtype=torch.float64)
    y = torch.arange(2 * k).view(2, k) % 2
    nothing = torch.zeros(2, k, dtype=torch.bool)
    torch.testing.assert_close(model.log_prob(x), model.log_prob(x, y, nothing))
    torch.testing.assert_close(model.log_prob(x), enumerated(model, x, torch.full((k,), FREE)))
    torch.testing.assert_close(model.log_prob(x, y), model.log_prob(x, y, ~nothing))


def test_the_factors_of_the_joint() -> None:
    """log p~(x, y) = log p~(x) + log p(y | x): Bayes' rule holds for the unnormalized joint."""
    model, x = small_model(6, torch.float64), images(dtype=torch.float64)
    y = torch.tensor([[0, 1, 0, 0, 1, 1], [1, 1, 1, 0, 0, 0]])
    p = model.predict(x)
    log_p = torch.where(y == 1, p, 1 - p).log().sum(dim=1)
    torch.testing.assert_close(model.log_prob(x, y), model.log_prob(x) + log_p)


def test_unobserved_labels_do_not_matter() -> None:
    model, x = small_model(3), images()
    observed = torch.tensor([[True, False, True]] * 2)
    values = [model.log_prob(x, torch.tensor([[1, hidden, 0]] * 2), observed) for hidden in (-1, 0, 1)]
    assert torch.equal(values[0], values[1])
    assert torch.equal(values[0], values[2])


@pytest.mark.parametrize(("outputs", "expected"), [(46, 7_136_494), (38, 7_135_462)], ids=["CelebA", "UT Zappos"])
def test_the_papers_network_has_the_papers_parameters(outputs: int, expected: int) -> None:
    """Appendix B, layer by layer: filters x (inputs x kernel) + biases.

    Convolutions: 64 x (3 x 9) + 64 = 1,792; 128 x (64 x 16) + 128 = 131,200; 256 x (128 x 16) + 256 = 524,544;
    512 x (256 x 16) + 512 = 2,097,664; 512 x (512 x 16) + 512 = 4,194,816; 64 x 512 + 64 = 32,832.
    Linear: 128 x 1,024 + 128 = 131,200; 128 x 128 + 128 = 16,512; these and the above make 7,130,560.
    The last: 46 x 128 + 46 = 5,934 for CelebA's 23 attributes, 38 x 128 + 38 = 4,902 for UT Zappos' 19.
    """
    model = PaperModel([f"a{i}" for i in range(outputs // 2)], image_size=64, width=64)
    assert sum(weight.numel() for weight in model.parameters()) == expected
    convolutions = [layer for layer in model.cnn if isinstance(layer, torch.nn.Conv2d)]
    shapes = [(c.in_channels, c.out_channels, c.kernel_size[0], c.stride[0], c.padding[0]) for c in convolutions]
    assert shapes == [
        (3, 64, 3, 1, 1),
        (64, 128, 4, 2, 1),
        (128, 256, 4, 2, 1),
        (256, 512, 4, 2, 1),
        (512, 512, 4, 2, 1),
        (512, 64, 1, 1, 0),
    ]
    kinds = {type(layer).__name__ for layer in [*model.cnn, *model.mlp]}
    assert kinds == {"Conv2d", "SiLU", "Flatten", "Linear"}  # no batch norm, no dropout
    assert model.mlp[4].out_features == outputs


@pytest.mark.parametrize(("size", "fold"), [(32, 1), (32, 4), (64, 1), (64, 2), (128, 1), (128, 4)])
def test_every_size_works_on_a_batch_of_one(size: int, fold: int) -> None:
    model = PaperModel(["a", "b"], image_size=size, width=2, fold=fold)
    x = torch.full((1, 3, size, size), 0.5)
    assert model.logits(x).shape == (1, 2, 2)
    assert model.predict(x).shape == (1, 2)
    assert model.log_prob(x).shape == (1,)
    facts = {"network": "paper", "names": ["a", "b"], "image_size": size, "width": 2, "fold": fold}
    assert model.config() == facts
    assert build_network(facts).config() == facts


def test_a_fold_looks_at_every_pixel_with_the_layers_of_a_smaller_net() -> None:
    """64 px with fold 2 is the 32 px net but for its first layer, which sees the four pixels of a square apart."""
    folded, small = (PaperModel(["a", "b"], size, 4, fold) for size, fold in ((64, 2), (32, 1)))
    convolutions = [[c.weight.shape for c in net.cnn if isinstance(c, torch.nn.Conv2d)] for net in (folded, small)]
    assert convolutions[0][0] == (4, 12, 3, 3)
    assert convolutions[0][1:] == convolutions[1][1:]
    x = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    (grad,) = torch.autograd.grad(folded.log_prob(x).sum(), x)
    assert (grad != 0).float().mean() > 0.99
    squares = grad[0, 0].unfold(0, 2, 2).unfold(1, 2, 2).flatten(2)
    assert (squares.std(dim=-1) > 0).float().mean() > 0.99


def test_an_energy_depends_on_its_own_image_alone() -> None:
    model, x = small_model(4), images(5)
    alone = torch.cat([model.logits(row) for row in x.split(1)])
    torch.testing.assert_close(model.logits(x), alone, atol=1e-5, rtol=1e-5)


def test_weights_lie_channels_last() -> None:
    model = PaperModel(["a"], image_size=32, width=4)
    assert model.cnn[2].weight.is_contiguous(memory_format=torch.channels_last)


def test_mixed_precision_ends_at_the_logits() -> None:
    """bfloat16 has three digits: sums over attributes must not be taken in it."""
    model, x = small_model(8), images()
    with torch.autocast("cpu", torch.bfloat16):
        logits = model.logits(x)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, model.logits(x), atol=0.05, rtol=0.05)


def bad_calls() -> dict:
    model, x, y = small_model(3), images(), torch.tensor([[0, 1, 0]] * 2)
    observed = torch.ones(2, 3, dtype=torch.bool)
    return {
        "images are bytes": (lambda: model.log_prob((x * 255).byte()), r"uint8"),
        "images are no tensor": (lambda: model.predict(x.numpy()), r"ndarray"),
        "images are double": (lambda: model.logits(x.double()), r"float64.*float32"),
        "no batch": (lambda: model.log_prob(x[0]), r"\(3, 32, 32\); expected \(N, 3, 32, 32\)"),
        "wrong size": (lambda: model.logits(x[..., :16]), r"\(2, 3, 32, 16\); expected \(N, 3, 32, 32\)"),
        "grey images": (lambda: model.predict(x[:, :1]), r"\(2, 1, 32, 32\)"),
        "above one": (lambda: model.log_prob(x * 3), r"range from .* to 2\.9.*\[0, 1\]"),
        "below zero": (lambda: model.log_prob(x - 1), r"range from -"),
        "not a number": (lambda: model.predict(x / 0 * 0), r"range from nan"),
        "too few labels": (lambda: model.log_prob(x, y[:, :2]), r"\(2, 2\); expected torch.int64 \(2, 3\)"),
        "labels of another batch": (lambda: model.log_prob(x, y[:1]), r"\(1, 3\); expected torch.int64 \(2, 3\)"),
        "labels are floats": (lambda: model.log_prob(x, y.float()), r"y is torch.float32"),
        "a label is 2": (lambda: model.log_prob(x, y + 1), r"y holds the value 2"),
        "an unknown label observed": (lambda: model.log_prob(x, y - 1, observed), r"y holds the value -1"),
        "a label is -2 in the dark": (lambda: model.log_prob(x, y - 2, ~observed), r"y holds the value -2"),
        "mask is of integers": (lambda: model.log_prob(x, y, y), r"observed is torch.int64"),
        "mask of another shape": (lambda: model.log_prob(x, y, observed[:, :1]), r"observed is torch.bool \(2, 1\)"),
        "mask without labels": (lambda: model.log_prob(x, None, observed), r"without labels"),
        "unknown size": (lambda: PaperModel(["a"], image_size=48), r"48.*32, 64, 128"),
        "no width": (lambda: PaperModel(["a"], width=0), r"width is 0"),
        "half a filter": (lambda: PaperModel(["a"], width=1.5), r"width is 1\.5"),
        "unknown fold": (lambda: PaperModel(["a"], fold=3), r"fold is 3.*1, 2, 4"),
        "no names": (lambda: PaperModel([]), r"at least one"),
        "a name twice": (lambda: PaperModel(["a", "a"]), r"\['a', 'a'\]"),
    }


@pytest.mark.parametrize("case", bad_calls())
def test_bad_input_is_refused_by_value(case: str) -> None:
    call, message = bad_calls()[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_weights_that_are_not_finite_are_named() -> None:
    model = small_model(2)
    check_weights(model)
    model.mlp[2].weight.data[0, 0] = float("nan")
    with pytest.raises(ValueError, match=r"mlp\.2\.weight.*NaN"):
        check_weights(model)


def test_the_bounds_themselves_are_images() -> None:
    check_images(torch.zeros(1, 3, 32, 32), 32)
    check_images(torch.ones(1, 3, 32, 32), 32)
    check_images(torch.empty(0, 3, 32, 32), 32)


def test_log_prob_keeps_large_logits_finite() -> None:
    logits = torch.tensor([[[800.0, -800.0], [900.0, 900.0]]])
    assert log_prob_from_logits(logits).item() == pytest.approx(1700 + torch.tensor(2.0).log().item())


def test_first_weights_carry_the_signal() -> None:
    """With a gain the last hidden layer still tells images apart; PyTorch's default leaves a hundredth of that."""
    model, x = PaperModel("abc", image_size=32, width=16), images(32)
    plain = model.mlp[:-1](model.cnn(x)).std(dim=0).mean().item()
    init_weights(model, 1.6, torch.Generator().manual_seed(0))
    hidden = model.mlp[:-1](model.cnn(x)).std(dim=0).mean().item()
    assert hidden > 10 * plain
    for layer in (model.cnn[2], model.mlp[0]):
        inputs = layer.weight[0].numel()
        assert layer.weight.std().item() == pytest.approx(1.6 / inputs**0.5, rel=0.1)
        assert (layer.bias == 0).all()
    assert model.mlp[4].weight.std().item() == pytest.approx(0.3 * 1.6 / 32**0.5, rel=0.2)
    again = PaperModel("abc", image_size=32, width=16)
    init_weights(again, 1.6, torch.Generator().manual_seed(0))
    assert torch.equal(model.mlp[4].weight, again.mlp[4].weight)


def test_second_derivatives_are_finite_however_sure_the_model_is() -> None:
    """Denoising differentiates a gradient; confident attributes must not turn it into NaN."""
    logits = torch.tensor([[[0.0, 200.0], [90.0, -90.0], [1.0, 2.0]]], requires_grad=True)
    value = log_prob_from_logits(logits)
    torch.testing.assert_close(value, torch.logsumexp(logits, dim=-1).sum(dim=-1))
    (grad,) = torch.autograd.grad(value.sum(), logits, create_graph=True)
    torch.testing.assert_close(grad, logits.softmax(dim=-1))
    (second,) = torch.autograd.grad(grad.square().sum(), logits)
    assert second.isfinite().all()
    assert second.abs().max() > 0
