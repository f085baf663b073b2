"""A real server and a real browser: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from driver import Studio
from evaluated import evaluate_prediction
from playwright.sync_api import Browser, Page
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


@pytest.fixture(scope="session")
def left() -> dict[bool, list[Page]]:
    """Pages that earlier visitors have left, of newcomers or not: one that was open loads the app in half the time."""
    return {True: [], False: []}


@pytest.fixture
def come(browser: Browser, left: dict[bool, list[Page]]) -> Iterator[Callable[..., Studio]]:
    """New visitors, each with a browser context that remembers nothing; afterwards every page must have been clean."""
    visitors: list[tuple[Studio, bool]] = []

    def come(url: str, viewport: tuple[int, int] = (1280, 720), newcomer: bool = False) -> Studio:
        if left[newcomer]:
            page = left[newcomer].pop()
        else:
            page = browser.new_context().new_page()
            if not newcomer:
                page.add_init_script("localStorage.setItem('gibbs-jem-hints', 'seen')")
        page.set_viewport_size({"width": viewport[0], "height": viewport[1]})
        studio = Studio(page, url)
        studio.forget()
        visitors.append((studio, newcomer))
        return studio

    yield come
    for studio, newcomer in visitors:
        if not studio.page.is_closed():
            studio.leave()
            left[newcomer].append(studio.page)
    for studio, _ in visitors:
        studio.clean()


@pytest.fixture
def visit(server: Server, come: Callable[..., Studio]) -> Callable[..., Studio]:
    """Open the first screen as a new visitor."""

    def visit(
        address: str = "", viewport: tuple[int, int] = (1100, 760), newcomer: bool = False, **settings: object
    ) -> Studio:
        studio = come(server.url, viewport, newcomer)
        return studio.open(address, **({"model": "tiny-levels", "chains": 4} | settings if not address else {}))

    return visit


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
def visitor(page_server: Server, come) -> Iterator[Callable[[str], Page]]:
    """A new visitor of a screen."""

    def visit(screen: str) -> Page:
        page = come(page_server.url, (1440, 900)).page
        page.goto(f"{page_server.url}/?screen={screen}&model=tiny&chains=4")
        return page

    yield visit
    assert "Traceback" not in page_server.log()
