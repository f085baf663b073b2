"""The network and its energies: one image in, two logits an attribute out (the paper's Eq. 4 and 5, appendix B)."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from jem_core.condition import FREE

IMAGE_SIZES = (32, 64, 128)
FOLDS = (1, 2, 4)


def log_prob_from_logits(logits: Tensor, y: Tensor | None = None, observed: Tensor | None = None) -> Tensor:
    """log p~(x, y_obs), up to the one constant log Z; (N,).

    Observed attributes add their logit, all others are summed out:
    sum over observed k of f(x)[k][y_k], plus sum over the rest of logsumexp f(x)[k]. All observed: the joint (Eq. 5).
    None observed: log p~(x) (appendix A.2). Some: the marginalizing sampler's target (Eq. 8), and training rows with
    missing labels.
    """
    marginal = torch.logaddexp(logits[..., 0], logits[..., 1])  # of two logits: a quarter of the cost of logsumexp
    if y is None:
        return marginal.sum(dim=-1)
    chosen = logits.gather(-1, y.clamp(min=0).unsqueeze(-1))[..., 0]  # an unknown label (-1) is never observed
    if observed is None:
        return chosen.sum(dim=-1)
    return torch.where(observed, chosen, marginal).sum(dim=-1)


class JointEnergyModel(nn.Module):
    """The paper's convolutional network for K binary attributes.

    Size 64 and width 64 is the paper's net layer for layer. Every size ends at 4 x 4 pixels: a smaller image takes
    fewer halvings, a larger one more. No batch norm and no dropout: an energy must depend on its own image alone.
    With fold 2 each square of 2 x 2 pixels enters as one of 12 channels: 64 px at the cost of 32 px, no pixel left out.
    """

    def __init__(self, names: Sequence[str], image_size: int = 64, width: int = 64, fold: int = 1) -> None:
        super().__init__()
        if image_size not in IMAGE_SIZES:
            raise ValueError(f"The image size is {image_size!r}; choose one of {', '.join(map(str, IMAGE_SIZES))}.")
        if not isinstance(width, int) or width < 1:
            raise ValueError(f"The width is {width!r}; it counts filters and must be a whole number of at least 1.")
        if fold not in FOLDS:
            raise ValueError(f"The fold is {fold!r}; choose one of {', '.join(map(str, FOLDS))}.")
        if not names or len(set(names)) != len(names):
            raise ValueError(f"The attribute names are {list(names)!r}; give at least one, each only once.")
        self.names = tuple(names)
        self.image_size = image_size
        self.width = width
        self.fold = fold
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
        self.to(memory_format=torch.channels_last)

    @property
    def num_attributes(self) -> int:
        return len(self.names)

    def config(self) -> dict:
        """What it takes to build this network again."""
        return {"names": list(self.names), "image_size": self.image_size, "width": self.width, "fold": self.fold}

    def logits(self, x: Tensor) -> Tensor:
        """f(x): two logits an attribute, (N, K, 2). `x` is (N, 3, S, S), float, in [0, 1], on the model's device."""
        weight = self.mlp[0].weight
        if x.device != weight.device or x.dtype != weight.dtype:
            raise ValueError(f"The images are {x.dtype} on {x.device}, the model is {weight.dtype} on {weight.device}.")
        if x.ndim != 4 or x.shape[1:] != (3, self.image_size, self.image_size):
            size = self.image_size
            raise ValueError(f"The images have shape {tuple(x.shape)}; expected (N, 3, {size}, {size}).")
        hidden = self.cnn(x.contiguous(memory_format=torch.channels_last))
        # Mixed precision ends here: a sum of many logits in bfloat16 would round energies to whole numbers.
        with torch.autocast(x.device.type, enabled=False):
            return self.mlp(hidden.to(weight.dtype)).unflatten(-1, (self.num_attributes, 2))

    forward = logits

    def log_prob(self, x: Tensor, y: Tensor | None = None, observed: Tensor | None = None) -> Tensor:
        """log p~(x, y_obs) by the one formula of `log_prob_from_logits`; no labels gives log p~(x). (N,)."""
        check_images(x, self.image_size)
        if y is not None:
            check_labels(y, observed, (len(x), self.num_attributes))
        elif observed is not None:
            raise ValueError("A mask of observed labels was given without labels y.")
        return log_prob_from_logits(self.logits(x), y, observed)

    def predict(self, x: Tensor) -> Tensor:
        """P(y_k = 1 | x), a softmax over the two logits of each attribute (Eq. 7). (N, K)."""
        check_images(x, self.image_size)
        return self.logits(x).softmax(dim=-1)[..., 1]

    def score(self, x: Tensor) -> Tensor:
        """log p~(x), all labels summed out (appendix A.2). (N,)."""
        return self.log_prob(x)


def init_weights(model: JointEnergyModel, gain: float, generator: torch.Generator, last: float = 0.3) -> None:
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
            layer.bias.zero_()
        layers[-1].weight.mul_(last)


def check_images(x: Tensor, image_size: int) -> None:
    """Refuse what is not a batch of finite images in [0, 1]: the check at every door, too slow for every step."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"The images are {kind}; expected a floating-point tensor with values in [0, 1].")
    if x.ndim != 4 or x.shape[1:] != (3, image_size, image_size):
        raise ValueError(f"The images have shape {tuple(x.shape)}; expected (N, 3, {image_size}, {image_size}).")
    low, high = (bound.item() for bound in x.aminmax()) if x.numel() else (0.0, 0.0)
    if not (low >= 0.0 and high <= 1.0):
        raise ValueError(f"The images range from {low:g} to {high:g}; expected finite values in [0, 1].")


def check_labels(y: Tensor, observed: Tensor | None, shape: tuple[int, int], name: str = "y") -> None:
    """Refuse labels that are not int64 (N, K), or not 0 or 1 where they are observed (everywhere without a mask)."""
    for title, value, kind in ((name, y, torch.int64), ("observed", observed, torch.bool)):
        if value is not None and (value.shape != shape or value.dtype != kind):
            found, wanted = f"{value.dtype} {tuple(value.shape)}", f"{kind} {shape}"
            raise ValueError(f"{title} is {found}; expected {wanted}: images, attributes.")
    bad = (y != 0) & (y != 1)
    if observed is not None:
        bad = bad & (observed | (y != FREE))
    if bad.any():
        raise ValueError(f"{name} holds the value {y[bad][0].item()}; expected 0 or 1, or -1 where it is not observed.")


def check_weights(model: nn.Module) -> None:
    """Refuse weights that are not finite, by the name of the first bad one."""
    for name, weight in model.named_parameters():
        if not torch.isfinite(weight).all():
            raise ValueError(f"The weight {name} holds NaN or infinite values; expected finite numbers.")
