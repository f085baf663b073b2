"""Joint energy-based models of many attributes: the science, and nothing else.

bundle = jem_core.load("avatars")
condition = jem_core.Condition.from_lists(bundle.names, wanted=["Eyeglasses"], unwanted=["Male"])
samples = jem_core.sample(bundle, condition, n=16)
"""

import sys
from importlib import import_module
from types import ModuleType

# What `import jem_core` offers, imported when it is first used: the package itself costs nothing, not even torch.
_EXPORTS = {
    "Bundle": "jem_core.bundle",
    "Condition": "jem_core.condition",
    "JointEnergyModel": "jem_core.model",
    "bundled_names": "jem_core.hub",
    "load": "jem_core.hub",
    "predict": "jem_core.predict",
    "sample": "jem_core.sampling",
}
__all__ = sorted(_EXPORTS)


class _Package(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name not in _EXPORTS:
            raise AttributeError(f"module 'jem_core' has no attribute {name!r}; it offers {', '.join(__all__)}.")
        return getattr(import_module(_EXPORTS[name]), name)

    def __setattr__(self, name: str, value: object) -> None:
        # Importing the module jem_core.predict would put it in the place of the function of the same name.
        if not (name in _EXPORTS and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
