"""The only door to torchvision and torchmetrics, which some tests compare with: `from tests.vision import v2`.

The torchvision wheel of the package index is built against CUDA. On a CPU-only torch its compiled part cannot load, and
the import then fails while it registers shapes for two operators that nobody declared. Declaring their signatures
first, without any kernel, lets the import pass. Everything written in Python works; the compiled operators still
raise torchvision's own error when they are called.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util

import torch

_UNDECLARED = ("nms", "qnms")
_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_library: torch.library.Library | None = None  # kept alive: its declarations vanish with it


def _declare_operators() -> None:
    """Declare what the import of torchvision expects, where its compiled part cannot do so itself."""
    global _library
    if torch.version.cuda is not None or _library is not None or _compiled_part_loads():
        return
    _library = torch.library.Library("torchvision", "FRAGMENT")
    for name in _UNDECLARED:
        _library.define(name + _SIGNATURE)


def _compiled_part_loads() -> bool:
    """Load torchvision's shared object by its path, without running torchvision's Python."""
    package = importlib.util.find_spec("torchvision")
    if package is None or not package.submodule_search_locations:
        raise ImportError("torchvision is not installed.")
    finder = importlib.machinery.FileFinder(
        package.submodule_search_locations[0],
        (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
    )
    compiled = finder.find_spec("_C")
    if compiled is None or compiled.origin is None:
        return False
    try:
        torch.ops.load_library(compiled.origin)
    except OSError:
        return False
    return True


_declare_operators()

import torchmetrics  # noqa: E402 (it imports torchvision)
from torchvision.transforms import v2  # noqa: E402

__all__ = ["torchmetrics", "v2"]
