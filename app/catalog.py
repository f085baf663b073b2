"""The models at hand: bundled ones, directories, and Hub models that appear when they have arrived."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app import gpu, kinds, static
from app.attributes import grouped
from app.model_check import check_model
from app.presets import presets_for
from jem_core import hub
from jem_core.bundle import Bundle, read_config, sampling_of
from jem_core.data.facts import DataFacts
from jem_core.networks import NETWORKS
from jem_core.objectives import OBJECTIVES as KINDS
from jem_core.settings import starts_for

FIRST = "avatars"  # the model that the page opens on, where it is at hand
LABELS = {"avatars": "Avatars", "celeba": "Faces", "shoes": "Shoes", "utzappos": "Shoes"}  # by the source of the data
NOUNS = {"avatars": "faces", "celeba": "faces", "shoes": "shoes", "utzappos": "shoes"}
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
    def generates(self) -> bool:
        """Whether it can be sampled from; a plain classifier cannot. An unknown objective counts as one that can."""
        kind = KINDS.get(self.objective)
        return kind is None or kind.generates

    @property
    def levels(self) -> bool:
        return NETWORKS[self.config["model"].get("network", "paper")].levels

    @property
    def data(self) -> DataFacts:
        return DataFacts.read(self.config, self.attributes)

    @property
    def iterations(self) -> int | None:
        """Of its training; two models may be compared only with an eye on this."""
        return self.config.get("training", {}).get("iterations")

    @property
    def title(self) -> str:
        return self.config.get("title") or f"{self.name} ({kinds.word(self.objective)})"


class Catalog:
    """Models by name, the one to open first: the first of `sources` that is here, else `avatars`.

    `sources` are bundled names, which then come first, and directories and Hub ids besides the bundled models.
    """

    def __init__(self, sources: Sequence[str] = (), bundled: Path = hub.BUNDLED, device: str | None = None) -> None:
        self._device = device
        self._entries: dict[str, Entry] = {}
        self._reading = threading.Lock()
        # A worker that is forked while another thread reads must not wait for that thread: it does not have it.
        os.register_at_fork(after_in_child=lambda: setattr(self, "_reading", threading.Lock()))
        directories = sorted(path.parent for path in bundled.glob("*/config.json"))
        directories.sort(key=lambda path: path.name != FIRST)
        named = {path.name: path for path in directories}
        given = [named.get(source, Path(source)) for source in sources if not source.startswith("hf-hub:")]
        for directory in [*given, *(path for path in directories if path not in given)]:
            try:
                config = read_config(directory)
                self._add(Entry(config.get("name", directory.name), config, directory, source=directory.name))
            except ValueError as error:
                if directory in given:
                    raise
                log.warning("The model in %s is left out: %s", directory, error)
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
        check_model(entry)
        name, number = entry.name, 2
        while entry.name in self._entries:
            entry.name, number = f"{name}-{number}", number + 1
        self._entries[entry.name] = entry

    def _fetch(self, source: str) -> None:
        """A Hub model in the background: bundled models serve first, a dead network delays nobody."""
        try:
            bundle = hub.load(source, device=self.device)
            self._add(Entry(bundle.name, bundle.config, bundle.directory, {self.device: bundle}, source))
        except Exception as error:  # whatever somebody else's file may hold
            log.warning("The model %s is not available: %s", source, error)

    def attributes(self) -> dict[str, tuple[str, ...]]:
        """The models that can be sampled from, each with its attributes; a plain classifier is not."""
        return {e.name: e.attributes for e in list(self._entries.values()) if e.generates}

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
        """The first model to stand beside this one."""
        return next(iter(self.rivals(name)), None)

    def rivals(self, name: str) -> list[str]:
        """The models that can stand beside this one, from the same noise: the same attributes and size learned with
        another objective."""
        mine = self._entries[name]
        others = [
            entry
            for entry in list(self._entries.values())
            if (entry.attributes, entry.image_size) == (mine.attributes, mine.image_size)
            and entry.generates
            and entry.objective != mine.objective
        ]
        others.sort(key=lambda entry: list(KINDS).index(entry.objective) if entry.objective in KINDS else len(KINDS))
        return [entry.name for entry in others]

    def family(self, name: str) -> list[str]:
        """The models of the same data, this one among them; the one to show first comes first."""
        mine = self._entries[name].data.source
        known = [self._entries[other] for other in self.attributes()]
        family = [entry for entry in known if entry.data.source == mine]
        family.sort(key=lambda entry: not entry.levels)
        return [entry.name for entry in family]

    def facts(self) -> list[dict]:
        """What the page must know of each model, from its config alone."""
        return [self._facts(self._entries[name]) for name in self.attributes()]

    def _facts(self, entry: Entry) -> dict:
        data = entry.data
        return {
            "name": entry.name,
            "title": entry.title,
            "size": entry.image_size,
            "names": list(entry.attributes),
            "groups": grouped(entry.attributes),
            "sampling": sampling_of(entry.config, entry.levels),
            "levels": entry.levels,
            "exclusive": {name: list(data.instead_of(name)) for name in entry.attributes},
            "rivals": self.rivals(entry.name),
            "family": self.family(entry.name),
            "kind": kinds.word(entry.objective),
            "label": LABELS.get(data.source, data.title),
            "noun": NOUNS.get(data.source, "pictures"),
            "cover": static.cover(data.source),
            "held_out": [pair.as_dict() for pair in data.held_out],
            "presets": presets_for(entry.attributes),
            "starts": ["photo" if one == "images" else one for one in starts_for(entry.levels)],
            "credit": data.credit,
        }
