"""The paper's convolutional network (appendix B): one image in, two logits per attribute out, no noise level."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from jem_core.model import JointEnergyModel


class PaperModel(JointEnergyModel):
    """Size 64 and width 64 is the paper's net layer for layer.

    Every size ends at 4 x 4 pixels: a smaller image takes fewer halvings, a larger one more. No batch norm and no
    dropout: an energy must depend on its own image alone. With fold 2 each square of 2 x 2 pixels enters as one of 12
    channels: 64 px at the cost of 32 px, no pixel left out. Chains run on images in [0, 1].
    """

    network = "paper"
    shape_keys = ("width",)

    def __init__(self, names: Sequence[str], image_size: int = 64, width: int = 64, fold: int = 1) -> None:
        super().__init__(names, image_size, fold)
        if not isinstance(width, int) or width < 1:
            raise ValueError(f"The width is {width!r}; it counts filters and must be a whole number of at least 1.")
        self.width = width
        halvings = (image_size // fold // 4).bit_length() - 1
        channels = [width * min(2**i, 8) for i in range(halvings + 1)]
        layers: list[nn.Module] = [nn.PixelUnshuffle(fold)] if fold > 1 else []
        layers += [nn.Conv2d(3 * fold**2, width, 3, stride=1, padding=1), nn.SiLU()]
        for before, after in pairwise(channels):
            layers += [nn.Conv2d(before, after, 4, stride=2, padding=1), nn.SiLU()]
        layers += [nn.Conv2d(channels[-1], width, 1), nn.Flatten()]
        self.cnn = nn.Sequential(*layers)
        self.mlp = nn.Sequential(
            nn.Linear(16 * width, 2 * width),
            nn.SiLU(),
            nn.Linear(2 * width, 2 * width),
            nn.SiLU(),
            nn.Linear(2 * width, 2 * len(self.names)),
        )
        # Convolutions on CPU are a fifth faster when the channels lie side by side in memory.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def logits(self, x: Tensor) -> Tensor:
        """f(x), (N, K, 2). `x` is (N, 3, S, S), float, in [0, 1], on the model's device."""
        self.check_input(x)
        hidden = self.cnn(x.contiguous(memory_format=torch.channels_last))
        # Mixed precision ends here: a sum of many logits in bfloat16 would round energies to whole numbers.
        with torch.autocast(x.device.type, enabled=False):
            return self.mlp(hidden.to(x.dtype)).unflatten(-1, (self.num_attributes, 2))

    forward = logits


def init_weights(model: PaperModel, gain: float, generator: torch.Generator, last: float = 0.3) -> None:
    """Normal weights that carry the signal through all layers: standard deviation gain / sqrt(inputs), no bias.

    PyTorch's default shrinks it at each of the eight layers, and without batch norm nothing restores it: energies begin
    almost flat and both classifier and chains lose hundreds of iterations. The last layer begins smaller still, so that
    the first energies are not steep.
    """
    layers = [module for module in model.modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    with torch.no_grad():
        for layer in layers:
            draws = torch.randn(layer.weight.shape, generator=generator)
            layer.weight.copy_(draws * (gain / layer.weight[0].numel() ** 0.5))
            cast(Tensor, layer.bias).zero_()
        layers[-1].weight.mul_(last)
