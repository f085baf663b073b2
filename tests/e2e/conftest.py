"""A real server and a real browser: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from driver import Studio
from evaluated import evaluate_prediction
from serve import CHROMIUM, FLAGS, ROOT, Server, start_server, stop_server

from jem_core.bundle import Bundle

__all__ = ["ROOT"]  # other tests take it from here


@pytest.fixture(scope="session")
def models(tiny_bundle: Bundle, tiny_levels: Bundle, tiny_rival: Bundle) -> list[Path]:
    """Small models with the same attributes: with noise levels, as Gibbs-JEM, as factored JEM."""
    return [tiny_levels.directory, tiny_bundle.directory, tiny_rival.directory]


@pytest.fixture(scope="session")
def server(models: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_server(tmp_path_factory.mktemp("server") / "log.txt", models)
    yield server
    stop_server(server)


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict:
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is missing: the browser tests did not run")
        pytest.skip("chromium is not installed")
    return {"executable_path": CHROMIUM, "args": list(FLAGS)}


@pytest.fixture
def visit(server: Server, new_context) -> Iterator[Callable[..., Studio]]:
    """Open the first screen as a new visitor; afterwards every page must have been clean."""
    visitors: list[Studio] = []

    def visit(
        address: str = "", viewport: tuple[int, int] = (1100, 760), newcomer: bool = False, **settings: object
    ) -> Studio:
        context = new_context(viewport={"width": viewport[0], "height": viewport[1]}, accept_downloads=True)
        if not newcomer:
            context.add_init_script("localStorage.setItem('gibbs-jem-hints', 'seen')")
        studio = Studio(context.new_page(), server.url)
        visitors.append(studio)
        return studio.open(address, **({"model": "tiny-levels", "chains": 4} | settings if not address else {}))

    yield visit
    for studio in visitors:
        studio.clean()


@pytest.fixture(scope="session")
def evaluated(tiny_bundle, tiny_dataset, tmp_path_factory) -> Path:
    """Two small models with the files of a real evaluation, for the second and third screens."""
    folder = tmp_path_factory.mktemp("evaluated")
    evaluate_prediction(tiny_bundle, tiny_dataset, folder / "tiny-supervised", "supervised")
    return evaluate_prediction(tiny_bundle, tiny_dataset, folder / "tiny", "gibbs-jem", pairs=True)


@pytest.fixture(scope="session")
def page_server(evaluated, tmp_path_factory):
    models = [evaluated, evaluated.parent / "tiny-supervised"]
    server = start_server(tmp_path_factory.mktemp("server") / "log.txt", models)
    yield server
    stop_server(server)


@pytest.fixture
def visitor(page_server, new_context):
    """A new visitor of a screen; afterwards the page must have been clean."""
    pages: list[Studio] = []

    def visit(screen: str) -> object:
        context = new_context(viewport={"width": 1440, "height": 900})
        studio = Studio(context.new_page(), page_server.url)
        pages.append(studio)
        studio.page.goto(f"{page_server.url}/?screen={screen}&model=tiny&chains=4")
        return studio.page

    yield visit
    for studio in pages:
        studio.clean()
    assert "Traceback" not in page_server.log()
