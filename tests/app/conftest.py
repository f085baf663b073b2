"""The app's own parts over small models of both kinds, without a server."""

from pathlib import Path

import pytest

from app.catalog import Catalog
from app.limits import Limits
from app.runtime import Runtime, install
from jem_core.bundle import Bundle


@pytest.fixture(scope="session")
def tiny_models(tiny_bundle: Bundle, tiny_levels: Bundle, tiny_rival: Bundle) -> list[str]:
    return [str(bundle.directory) for bundle in (tiny_bundle, tiny_rival, tiny_levels)]


@pytest.fixture
def runtime(tiny_models: list[str], tmp_path: Path) -> Runtime:
    """The shared runtime with the small models and no bundled ones."""
    runtime = Runtime(Catalog(tiny_models, bundled=tmp_path, device="cpu"), Limits(best_of=3))
    install(runtime)
    return runtime
