"""Joint energy-based models of many attributes: the science, and nothing else.

bundle = jem_core.load("avatars")
condition = jem_core.Condition.from_lists(bundle.names, required=["Eyeglasses"], excluded=["Male"])
samples = jem_core.sample(bundle, condition, n=16)
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what an editor and a type checker see
    from jem_core.bundle import Bundle
    from jem_core.chains import sample
    from jem_core.condition import Condition
    from jem_core.hub import bundled_names, load
    from jem_core.model import JointEnergyModel
    from jem_core.prediction import predict

# What `import jem_core` offers, imported when it is first used: the package itself costs nothing, not even torch.
_EXPORTS = {
    "Bundle": "jem_core.bundle",
    "Condition": "jem_core.condition",
    "JointEnergyModel": "jem_core.model",
    "bundled_names": "jem_core.hub",
    "load": "jem_core.hub",
    "predict": "jem_core.prediction",
    "sample": "jem_core.chains",
}
__all__ = ["Bundle", "Condition", "JointEnergyModel", "bundled_names", "load", "predict", "sample"]


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'jem_core' has no attribute {name!r}; it offers {', '.join(__all__)}.")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
