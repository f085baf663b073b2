"""The quicker second derivatives are the derivatives: against torch's own, against differences, in both precisions."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jem_core.networks.residual import ResidualModel
from jem_core.networks.second_order import Convolution, silu
from jem_core.objectives.denoising import denoise
from jem_core.precision import compute_in


def weights_gradient(layer: nn.Module, curve: object, x: Tensor) -> list[Tensor]:
    """Of a loss on the gradient to the image and on the output itself, as denoising has it."""
    x = x.clone().requires_grad_()
    out = curve(layer(curve(x)))
    (grad,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
    return list(torch.autograd.grad((grad**3).sum() + out.sin().sum(), [*layer.parameters()]))


@pytest.mark.parametrize(("kernel", "stride", "padding", "bias"), [(3, 1, 1, True), (4, 2, 1, True), (1, 1, 0, False)])
def test_a_convolution_and_silu_have_torchs_own_second_derivatives(kernel, stride, padding, bias):
    torch.manual_seed(0)
    ours = Convolution(4, 6, kernel, stride=stride, padding=padding, bias=bias).double()
    theirs = nn.Conv2d(4, 6, kernel, stride=stride, padding=padding, bias=bias).double()
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(3, 4, 8, 8, dtype=torch.float64)
    found, expected = weights_gradient(ours, silu, x), weights_gradient(theirs, F.silu, x)
    assert len(found) == 1 + bias
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_they_agree_with_differences():
    torch.manual_seed(0)
    layer = Convolution(2, 3, 3, padding=1).double()
    x = torch.randn(2, 2, 4, 4, dtype=torch.float64, requires_grad=True)

    def given(x: Tensor, weight: Tensor) -> Tensor:
        return silu(torch.func.functional_call(layer, {"weight": weight}, (x,)))

    weight = layer.weight.detach().requires_grad_()
    assert torch.autograd.gradcheck(given, (x, weight))
    assert torch.autograd.gradgradcheck(lambda x: given(x, weight.detach()), (x,))


def test_in_evaluation_a_convolution_is_torchs_own():
    torch.manual_seed(0)
    layer, x = Convolution(4, 4, 3, padding=1), torch.randn(2, 4, 8, 8)
    training = layer(x)
    assert torch.equal(layer.eval()(x), training)
    (grad,) = torch.autograd.grad(layer(x).sum(), layer.weight, create_graph=True)
    assert grad.isfinite().all()  # in training it is not a number: see the next test


def test_whoever_wants_more_than_is_there_gets_no_wrong_number():
    layer, x = Convolution(2, 2, 3, padding=1), torch.randn(1, 2, 4, 4)
    (grad,) = torch.autograd.grad(layer(x).sum(), layer.weight, create_graph=True)
    assert grad.isnan().all()


def loss_gradients(model: ResidualModel, precision: str) -> list[Tensor]:
    torch.manual_seed(1)
    x, sigma = torch.randn(4, 3, 32, 32), torch.tensor([0.1, 0.5, 1.0, 4.0])
    condition = torch.tensor([[1, -1], [0, 1], [-1, -1], [1, 0]])
    with compute_in(precision, torch.device("cpu")):
        denoised, logits = denoise(model, x, sigma, condition)
        loss = (denoised - x).square().mean() + logits.square().mean()
    return list(torch.autograd.grad(loss, [*model.parameters()]))


@pytest.mark.parametrize(("precision", "most"), [("float32", 1e-4), ("bfloat16", 0.05)])
def test_the_gradient_that_denoising_learns_from_is_the_same(precision, most):
    torch.manual_seed(0)
    model = ResidualModel(["A", "B"], 32, [8, 16], [1, 1], 2, 8, 1)
    with torch.no_grad():
        for weight in model.parameters():  # much of the network begins at zero, and so would its gradients
            weight += 0.1 * torch.randn_like(weight)
    found = loss_gradients(model.train(), precision)
    expected = loss_gradients(model.eval(), "float32")
    assert all(one.dtype == torch.float32 for one in found)
    scale = torch.cat([one.flatten() for one in expected]).norm()
    away = torch.cat([(one - other).flatten() for one, other in zip(found, expected, strict=True)]).norm()
    assert away / scale < most
