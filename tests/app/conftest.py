"""The app's own parts over small models of both kinds, without a server."""

from pathlib import Path

import pytest
from evaluated import evaluate_prediction

from app.catalog import Catalog
from app.limits import Limits
from app.runtime import Runtime, install
from jem_core.bundle import Bundle
from jem_core.data.dataset import Dataset


@pytest.fixture(scope="session")
def tiny_models(tiny_bundle: Bundle, tiny_levels: Bundle, tiny_rival: Bundle) -> list[str]:
    return [str(bundle.directory) for bundle in (tiny_bundle, tiny_rival, tiny_levels)]


@pytest.fixture
def runtime(tiny_models: list[str], tmp_path: Path) -> Runtime:
    """The shared runtime with the small models and no bundled ones."""
    runtime = Runtime(Catalog(tiny_models, bundled=tmp_path, device="cpu"), Limits(best_of=3))
    install(runtime)
    return runtime


@pytest.fixture(scope="session")
def evaluated_models(tiny_bundle: Bundle, tiny_dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A family of two in a folder, with the files of their evaluations."""
    folder = tmp_path_factory.mktemp("evaluated")
    evaluate_prediction(tiny_bundle, tiny_dataset, folder / "tiny", "gibbs-jem", pairs=True)
    evaluate_prediction(tiny_bundle, tiny_dataset, folder / "tiny-supervised", "supervised")
    return folder


@pytest.fixture
def compared(evaluated_models: Path, tmp_path: Path) -> Path:
    """That folder, as the models of the app."""
    sources = [str(evaluated_models / "tiny"), str(evaluated_models / "tiny-supervised")]
    install(Runtime(Catalog(sources, bundled=tmp_path, device="cpu"), Limits()))
    return evaluated_models
