"""The models at hand: bundled ones, directories, and Hub models that appear when they have arrived."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app import gpu
from app.attributes import grouped
from app.presets import presets_for
from jem_core import hub
from jem_core.bundle import SAMPLING_DEFAULTS, Bundle, read_config
from jem_core.data.held_out import parse

FIRST = "avatars"  # the model that the page opens on, where it is at hand
OBJECTIVES = {"gibbs-jem": "Gibbs-JEM", "jem": "factored JEM", "supervised": "supervised"}
log = logging.getLogger("gibbs_jem")


@dataclass
class Entry:
    """A model that can be chosen; its weights are read when somebody does."""

    name: str
    config: dict
    directory: Path | None = None
    bundles: dict[str, Bundle] = field(default_factory=dict)  # by device: a ZeroGPU worker has another than the server
    source: str = ""

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(self.config["model"]["names"])

    @property
    def image_size(self) -> int:
        return self.config["model"]["image_size"]

    @property
    def objective(self) -> str:
        return str(self.config.get("objective", "gibbs-jem"))

    @property
    def iterations(self) -> int | None:
        """Of its training; two models may be compared only with an eye on this."""
        return self.config.get("training", {}).get("iterations")

    @property
    def title(self) -> str:
        return self.config.get("title") or f"{self.name} ({OBJECTIVES.get(self.objective, self.objective)})"


class Catalog:
    """Models by name, the one to open first: a directory of `sources` where one was given, else `avatars`.

    `sources` are directories and Hub ids, besides the bundled models.
    """

    def __init__(self, sources: Sequence[str] = (), bundled: Path = hub.BUNDLED, device: str | None = None) -> None:
        self._device = device
        self._entries: dict[str, Entry] = {}
        self._reading = threading.Lock()
        # A worker that is forked while another thread reads must not wait for that thread: it does not have it.
        os.register_at_fork(after_in_child=lambda: setattr(self, "_reading", threading.Lock()))
        directories = sorted(path.parent for path in bundled.glob("*/config.json"))
        directories.sort(key=lambda path: path.name != FIRST)
        given = [Path(source) for source in sources if not source.startswith("hf-hub:")]
        for directory in [*given, *directories]:
            config = read_config(directory)
            self._add(Entry(config.get("name", directory.name), config, directory, source=directory.name))
        self._coming = [source for source in sources if source.startswith("hf-hub:")]
        for source in self._coming:
            threading.Thread(target=self._fetch, args=(source,), daemon=True).start()
        if not self._entries and not self._coming:
            raise ValueError(
                f"There is no model in {bundled}; add one with --model DIRECTORY or --model hf-hub:owner/name."
            )

    @property
    def device(self) -> str:
        """Where this process computes; asked anew each time, because a forked worker may have a GPU of its own."""
        return self._device or gpu.device()

    def _add(self, entry: Entry) -> None:
        name, number = entry.name, 2
        while entry.name in self._entries:
            entry.name, number = f"{name}-{number}", number + 1
        self._entries[entry.name] = entry

    def _fetch(self, source: str) -> None:
        """A Hub model in the background: bundled models serve first, a dead network delays nobody."""
        try:
            bundle = hub.load(source, device=self.device)
        except Exception as error:
            log.warning("The model %s is not available: %s", source, error)
            return
        self._add(Entry(bundle.name, bundle.config, bundle.directory, {self.device: bundle}, source))

    def attributes(self) -> dict[str, tuple[str, ...]]:
        """The models that can be sampled from, each with its attributes; a plain classifier is no sampler."""
        return {e.name: e.attributes for e in list(self._entries.values()) if e.objective != "supervised"}

    def entries(self) -> list[Entry]:
        """All models at hand, plain classifiers among them."""
        return list(self._entries.values())

    def entry(self, name: str) -> Entry:
        return self._entries[name]

    def bundle(self, name: str) -> Bundle:
        """The model itself, read once."""
        entry = self._entries[name]
        with self._reading:
            if self.device not in entry.bundles:
                entry.bundles[self.device] = hub.load(entry.directory, self.device)
        return entry.bundles[self.device]

    def title(self, name: str) -> str:
        return self._entries[name].title

    def source(self, name: str) -> str:
        """What jem_core.hub.load takes to find this model; visitors see it, so a directory shows its name alone."""
        return self._entries[name].source

    def rival(self, name: str) -> str | None:
        """The model to stand beside this one, from the same noise: the same attributes and size learned with another
        objective, JEM for choice."""
        mine = self._entries[name]
        others = [
            entry
            for entry in list(self._entries.values())
            if (entry.attributes, entry.image_size) == (mine.attributes, mine.image_size)
            and entry.objective not in (mine.objective, "supervised")
        ]
        others.sort(key=lambda entry: entry.objective != "jem")
        return others[0].name if others else None

    def facts(self) -> list[dict]:
        """What the page must know of each model, from its config alone."""
        return [self._facts(self._entries[name]) for name in self.attributes()]

    def _facts(self, entry: Entry) -> dict:
        data = entry.config.get("data", {})
        pairs = [parse(text).as_dict() for text in data.get("held_out", [])]
        sampling = SAMPLING_DEFAULTS | entry.config.get("sampling", {})
        return {
            "name": entry.name,
            "title": entry.title,
            "size": entry.image_size,
            "names": list(entry.attributes),
            "groups": grouped(entry.attributes),
            "sampling": sampling | {"rest": sampling["steps"]},
            "rival": self.rival(entry.name),
            "held_out": [pair for pair in pairs if set(pair) <= set(entry.attributes)],
            "presets": presets_for(entry.attributes),
            "credit": data.get("credit", ""),
        }
