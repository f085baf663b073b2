"""How much one visitor, one address and all together may use: a small machine serves many if everything has an end."""

import os
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Limits:
    """Each can be set by an environment variable, GIBBS_JEM_RUN_SECONDS for `run_seconds` and so on.

    A visitor is a session, as one open page has it. An address is where requests come from: a household, or a school.
    """

    chains: int = 64  # in one grid
    run_steps: int = 6_000  # then a run rests and offers to continue
    run_seconds: int = 180
    runs_at_once: int = 4  # all others wait their turn in the queue; one address never holds all of them
    waiting: int = 64  # in the queue
    best_of: int = 10  # the paper's filter: the best N of 10 N
    sample_steps: int = 1_000  # of one call to /synthesize, or of keep-the-best
    call_seconds: int = 90  # of the same
    film_frames: int = 160  # of a run that is kept for the animation
    idle_seconds: int = 900  # after which a visitor's chains and picture are forgotten
    sessions: int = 256  # visitors that are remembered; the oldest idle one gives way
    sessions_per_address: int = 64
    events_per_visitor: int = 4  # running or waiting in the queue
    events_per_address: int = 16
    calls_at_once: int = 16  # quick events outside the queue
    calls_per_address: int = 8
    kept_megabytes: int = 256  # chains and pictures of visitors, in memory only
    kept_megabytes_per_address: int = 96
    behind_proxy: int = 0  # 1: addresses are those that a proxy in front of this server states, as in a Space

    @classmethod
    def from_environment(cls, device: str = "cpu") -> "Limits":
        changes = {} if device == "cpu" else {"chains": 256}  # a GPU has room for larger grids
        if "SPACE_ID" in os.environ:
            changes["behind_proxy"] = 1
        for field in fields(cls):
            variable = f"GIBBS_JEM_{field.name.upper()}"
            text = os.environ.get(variable)
            if text is None:
                continue
            least = 0 if field.name == "behind_proxy" else 1
            if not text.isdecimal() or int(text) < least:
                raise ValueError(f"{variable} is {text!r}; expected a whole number of at least {least}.")
            changes[field.name] = int(text)
        return cls(**changes)
