"""The divergence guard: watches a run and says when, and why, to go back to the last good state."""

import math
from collections import deque
from dataclasses import dataclass, field

from jem_core.config import TrainConfig


class TrainingDiverged(RuntimeError):
    """Raised when a run tripped the guard too often."""


@dataclass
class Guard:
    """Averages over a window, so that one odd batch does not trip it; a value that is not finite does at once."""

    config: TrainConfig
    trips: int = 0
    calm: int = 0  # iterations without trouble since the last trip, or since one was forgiven
    window: dict[str, deque] = field(default_factory=dict)

    def check(self, metrics: dict[str, float]) -> str | None:
        """None while all is well, else one sentence that says what is wrong."""
        for name, value in metrics.items():
            if not math.isfinite(value):
                return f"{name} is {value}"
        limits = {
            "energy_gap": self.config.guard_gap,
            "grad_norm": self.config.guard_grad_norm,
            "stuck": self.config.guard_stuck,
            "behind": self.config.guard_behind,
        }
        for name, limit in limits.items():
            if name in metrics and (mean := self._mean(name, abs(metrics[name]))) > limit:
                return f"{name} averages {mean:.3g} over {self.config.guard_window} iterations, above {limit:g}"
        contrast = metrics.get("buffer_contrast", 1.0)
        bound = self.config.guard_contrast
        if not 1 / bound <= contrast <= bound:
            return f"the buffer's pixel spread is {contrast:.2f} times the data's, outside 1/{bound:g} to {bound:g}"
        self._forgive()
        return None

    def _forgive(self) -> None:
        """A long calm takes one trip back: a bad hour must not slow the days that follow."""
        self.calm += 1
        if self.trips and self.calm >= self.config.guard_calm:
            self.trips, self.calm = self.trips - 1, 0

    def trip(self) -> bool:
        """Count a trip and forget the window; True while another try is allowed."""
        self.trips, self.calm = self.trips + 1, 0
        self.window.clear()
        return self.trips <= self.config.guard_trips

    def restore(self, trips: int, calm: int, window: dict[str, list[float]]) -> None:
        """Go on as the run that wrote these did."""
        self.trips, self.calm = trips, calm
        self.window = {name: deque(values, maxlen=self.config.guard_window) for name, values in window.items()}

    @property
    def rate_factor(self) -> float:
        """Every trip that is not forgiven halves the learning rate."""
        return 0.5**self.trips

    def _mean(self, name: str, value: float) -> float:
        values = self.window.setdefault(name, deque(maxlen=self.config.guard_window))
        values.append(value)
        # A half-filled window would let the first batches after a start or a roll-back decide alone.
        return sum(values) / len(values) if len(values) == values.maxlen else 0.0
