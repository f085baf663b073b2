"""A full server: what is refused is said, what can be tried again by itself is, and nothing stays dead."""

import pytest
from driver import Studio
from serve import start_server, stop_server

SAID = "(words) => document.querySelector('#gj-studio .gj-message span')?.textContent.includes(words)"


def said(studio: Studio) -> str:
    return studio.text(".gj-message span")


def test_a_full_server_says_so_and_when_the_pictures_start(models, new_context, tmp_path):
    few = {"GIBBS_JEM_RUNS_AT_ONCE": "1", "GIBBS_JEM_WAITING": "1", "GIBBS_JEM_RUN_SECONDS": "3600"}
    server = start_server(tmp_path / "log.txt", models, **few)
    try:
        address = f"{server.url}/?model=tiny-levels&chains=4&moving=1"
        visitors = [Studio(new_context().new_page(), server.url) for _ in range(3)]
        visitors[0].open(model="tiny-levels", chains=4, moving=1)
        visitors[1].page.goto(address)
        visitors[1].until(SAID, "Waiting for a free")
        visitors[2].page.goto(address)
        visitors[2].until(SAID, "Your pictures will start by themselves in about")
        assert "try again" not in said(visitors[2])
        assert visitors[2].store("playing") is False
        assert visitors[2].page.locator(".gj-main [data-do=main]").inner_text() == "Resume"
    finally:
        stop_server(server)


@pytest.fixture(scope="module")
def small_server(models, tmp_path_factory):
    """A server that has one place for a whole network."""
    server = start_server(tmp_path_factory.mktemp("server") / "log.txt", models, GIBBS_JEM_EVENTS_PER_ADDRESS="1")
    yield server
    stop_server(server)


@pytest.fixture
def busy(small_server, new_context):
    """A visitor whose pictures have settled, and another who takes the place."""
    studio, other = (Studio(new_context().new_page(), small_server.url) for _ in range(2))
    studio.open(model="tiny-levels", chains=4, **{"with": "Red"}).settle()
    studio.toggle("Left")
    other.open(model="tiny-levels", chains=4, moving=1)
    yield studio, other
    for visitor in (studio, other):
        visitor.leave()


def test_what_is_refused_is_said_and_can_be_asked_again(busy):
    studio, other = busy
    studio.fold_out(".gj-path")
    for end in ("a", "b"):
        studio.press(f"end-{end}")
    studio.fold_out(".gj-take")
    studio.fold_out(".gj-hood")
    for button in ("[data-take=gif]", "[data-do=path]", "[data-do=hood]"):
        studio.page.locator(button).click()
        studio.until(SAID, "Please try again in about")
        studio.page.locator("#gj-studio .gj-message button").click()
        assert studio.page.locator(button).is_enabled()
    assert studio.text(".gj-path-shown") == ""
    assert studio.text(".gj-hood-shown") == ""
    other.pause()
    studio.press("path")
    studio.page.locator(".gj-strip").wait_for()


@pytest.mark.parametrize("what", ["undo", "labels", "[data-view=chain]"])
def test_what_is_refused_is_done_when_there_is_a_place(busy, what):
    studio, other = busy
    if what == "labels":
        studio.fold_out(".gj-hood")
    run = studio.store("run")
    studio.page.locator(what if what[0] == "[" else f"#gj-studio .gj-main [data-do={what}]").click()
    studio.until(SAID, "This will be done by itself in about")
    assert "try again" not in said(studio)
    other.pause()
    studio.until(
        "(run) => { const { store, counters } = window.gibbsJem; return counters.shownRun === store.run; }", run
    )
    studio.settle()
    if what == "undo":
        assert studio.page.evaluate("window.gibbsJem.shown().with") == ["Red"]
