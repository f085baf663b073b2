"""The app's own parts over small models of both kinds, without a server."""

from pathlib import Path

import pytest
import torch

from app.catalog import Catalog
from app.limits import Limits
from app.runtime import Runtime, install
from jem_core.bundle import Bundle
from jem_core.networks.paper import PaperModel


@pytest.fixture(scope="session")
def tiny_models(tiny_bundle: Bundle, tiny_levels: Bundle, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    torch.manual_seed(1)
    rival = Bundle(
        name="tiny-jem",
        config={**tiny_bundle.config, "objective": "jem"},
        model=PaperModel(tiny_bundle.names, image_size=32, width=4),
        gaussian=tiny_bundle.gaussian,
        buffer=tiny_bundle.buffer,
        support=tiny_bundle.support,
    )
    directory = tmp_path_factory.mktemp("rivals") / "tiny-jem"
    rival.write(directory)
    return [str(tiny_bundle.directory), str(directory), str(tiny_levels.directory)]


@pytest.fixture
def runtime(tiny_models: list[str], tmp_path: Path) -> Runtime:
    """The shared runtime with the small models and no bundled ones."""
    runtime = Runtime(Catalog(tiny_models, bundled=tmp_path, device="cpu"), Limits(best_of=3))
    install(runtime)
    return runtime
