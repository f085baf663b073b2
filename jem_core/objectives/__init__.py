"""The objectives that a config can name. To add one, put a class into OBJECTIVES: nothing else knows their names."""

from jem_core.objectives.base import Loss, Objective, Setup
from jem_core.objectives.denoising import Denoising
from jem_core.objectives.joint import GibbsJem, Jem
from jem_core.objectives.supervised import Supervised

OBJECTIVES: dict[str, type[Objective]] = {kind.name: kind for kind in (Supervised, Jem, GibbsJem, Denoising)}


def find_objective(name: str) -> type[Objective]:
    if name not in OBJECTIVES:
        raise ValueError(f"There is no objective {name!r}; choose one of {', '.join(OBJECTIVES)}.")
    return OBJECTIVES[name]


__all__ = ["OBJECTIVES", "Loss", "Objective", "Setup", "find_objective"]
