"""How much one visitor may use: a small machine serves many only when every run has an end."""

import os
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Limits:
    """Each can be set by an environment variable, GIBBS_JEM_RUN_SECONDS for `run_seconds` and so on."""

    chains: int = 64  # in one grid
    run_steps: int = 6_000  # then a run rests and offers to continue
    run_seconds: int = 180
    runs_at_once: int = 4  # all others wait their turn in the queue
    waiting: int = 64
    best_of: int = 10  # the paper's filter: the best N of 10 N
    sample_steps: int = 1_000  # of one call to /synthesize, or of keep-the-best
    film_frames: int = 160  # of a run that is kept for the animation
    idle_seconds: int = 900  # after which a visitor's chains are forgotten

    @classmethod
    def from_environment(cls, device: str = "cpu") -> "Limits":
        changes = {} if device == "cpu" else {"chains": 256}  # a GPU has room for larger grids
        for field in fields(cls):
            variable = f"GIBBS_JEM_{field.name.upper()}"
            text = os.environ.get(variable)
            if text is None:
                continue
            if not text.isdecimal() or int(text) < 1:
                raise ValueError(f"{variable} is {text!r}; expected a whole number of at least 1.")
            changes[field.name] = int(text)
        return cls(**changes)
