"""What the whole server shares, set once at its start: a forked sampler inherits it, so it never has to be pickled."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog import Catalog
from app.limits import Limits

_current: Runtime | None = None


@dataclass(frozen=True)
class Runtime:
    catalog: Catalog
    limits: Limits


def install(runtime: Runtime) -> None:
    global _current
    _current = runtime


def current() -> Runtime:
    if _current is None:
        raise RuntimeError("The app was not built yet: call app.shell.build first.")
    return _current
