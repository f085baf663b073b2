"""The page as a whole: hints, phone, history, and what a screen reader and low vision need."""

import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
PHONE = (390, 844)
READY = {
    "studio": "() => window.gibbsJem?.store?.status === 'settled'",
    "photo": "() => window.gibbsJem?.photoScreen?.models?.length > 0",
    "compare": "() => window.gibbsJem?.compareScreen?.reply",
}


def axe_source() -> str:
    if not AXE.is_file():
        if os.environ.get("CI"):
            pytest.fail("axe-core is missing: run make scripts; accessibility was not tested")
        pytest.skip("axe-core is not installed (make scripts)")
    return AXE.read_text()


def serious(page) -> list[str]:
    """What axe finds that keeps somebody out."""
    page.evaluate(axe_source())
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    bad = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['help']}: " + json.dumps([node["target"] for node in one["nodes"][:4]]) for one in bad]


def serious_light_and_dark(studio) -> dict[str, list[str]]:
    found = {}
    for _ in range(2):
        studio.page.wait_for_timeout(600)  # what moves comes to rest: axe measures colours
        found[studio.page.locator(".gj-theme").inner_text()] = serious(studio.page)
        studio.page.locator(".gj-theme").click()
    return found


def unfold(studio, screen: str) -> None:
    """All that a screen has to show: its folded parts, and on the second what a picture brings."""
    if screen == "photo":
        studio.page.set_input_files("[data-photo=file]", ROOT / "assets" / "examples" / "astronaut.jpg")
        studio.page.locator(".gjp-row").first.wait_for()
        studio.page.locator("#gj-photo-plot .js-plotly-plot .main-svg").first.wait_for(state="attached")
    folded = studio.page.locator(f"#gj-screen-{screen} details:not([open]):visible > summary")
    while folded.count():
        folded.first.click()


@pytest.mark.parametrize("window", [(1100, 760), PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("screen", list(READY))
def test_axe_finds_nothing_serious(come, server, page_server, screen, window):
    """The first screen with a model that has all of its parts, the others with models that were evaluated."""
    url, model = (server.url, "tiny-levels") if screen == "studio" else (page_server.url, "tiny")
    studio = come(url, window).open(f"{url}/?__theme=light&screen={screen}&model={model}&chains=4")
    studio.until(READY[screen])
    unfold(studio, screen)
    assert serious_light_and_dark(studio) == {"Dark mode": [], "Light mode": []}
    if screen == "studio":
        studio.tile(1).locator(".gj-open").click()
        assert serious_light_and_dark(studio) == {"Dark mode": [], "Light mode": []}, "in the large view"


def test_three_hints_that_never_come_back(visit):
    studio = visit(newcomer=True)
    hints = studio.page.locator(".gj-hints")
    texts = []
    for _ in range(3):
        texts.append(hints.locator("p").inner_text())
        hints.locator("[data-hint=next]").click()
    assert [text[:6] for text in texts] == ["1 of 3", "2 of 3", "3 of 3"]
    assert hints.is_hidden()
    studio.settle()
    studio.reload()
    studio.settle()
    assert hints.is_hidden()


def test_hints_can_be_skipped(visit):
    studio = visit(newcomer=True)
    studio.page.locator("[data-hint=skip]").click()
    studio.settle()
    studio.reload()
    studio.settle()
    assert studio.page.locator(".gj-hints").is_hidden()


def test_on_a_phone_the_pictures_stay_in_sight_while_chips_are_tapped(visit):
    studio = visit(viewport=PHONE, model="avatars", chains=4, **{"with": ["Smiling"]})
    mini = studio.page.locator(".gj-mini")
    assert mini.is_hidden()
    last = studio.page.locator(".gj-chip").last
    last.scroll_into_view_if_needed()
    mini.wait_for(state="visible")
    last.click()
    grid, chip = mini.locator("canvas").bounding_box(), last.bounding_box()
    assert grid["y"] >= 0
    assert grid["y"] + grid["height"] <= chip["y"], "and does not cover what is tapped"
    studio.until("() => window.gibbsJem.shown().with.length === 2")
    painted = "(node) => node.getContext('2d').getImageData(30, 30, 1, 1).data[3]"
    assert mini.locator("canvas").evaluate(painted) == 255


@pytest.mark.parametrize("screen", list(READY))
def test_nothing_is_wider_than_a_phone(visit, server, screen):
    studio = visit(f"{server.url}/?screen={screen}&model=tiny-levels&chains=16", PHONE)
    studio.until(READY[screen])
    studio.page.wait_for_timeout(800)
    assert studio.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


def provoke(studio, screen: str) -> None:
    """Whatever makes a screen say something: the first says that its pictures are done."""
    if screen == "photo":
        broken = {"name": "broken.png", "mimeType": "image/png", "buffer": b"not a picture"}
        studio.page.set_input_files("[data-photo=file]", broken)
    elif screen == "compare":
        studio.page.evaluate("window.gibbsJem.compareScreen.family = 'nobody'")
        studio.page.locator(".gj-theme").click()  # the plots are asked for again
    studio.page.locator(f"#gj-screen-{screen} .gj-message").wait_for(state="visible")


@pytest.mark.parametrize("screen", list(READY))
def test_a_message_covers_no_button(visit, server, screen):
    studio = visit(f"{server.url}/?screen={screen}&model=tiny-levels&chains=4", PHONE)
    studio.until(READY[screen])
    provoke(studio, screen)
    covered = studio.page.evaluate(
        """(screen) => {
          const root = document.querySelector(`#gj-screen-${screen}`), message = root.querySelector('.gj-message');
          const others = [...root.querySelectorAll('button, input, select, summary, .gjp-drop')].filter((node) =>
            !message.contains(node) && node.checkVisibility());
          const found = [];
          for (let y = 0; y < document.body.scrollHeight; y += 100) {
            window.scrollTo(0, y);
            const box = message.getBoundingClientRect();
            for (const node of others) {
              const other = node.getBoundingClientRect();
              const apart = other.top >= box.bottom || other.bottom <= box.top
                || other.left >= box.right || other.right <= box.left;
              if (!apart) found.push(`${node.textContent || node.outerHTML} at ${y}`);
            }
          }
          return found;
        }""",
        screen,
    )
    assert covered == []


def test_the_address_is_that_of_what_is_on_screen_after_back(visit):
    studio = visit(**{"with": ["Red"]}).settle()
    for screen in ("compare", "studio"):
        studio.page.locator(f"[data-screen={screen}]").click()
    studio.toggle("Left")
    for screen in ("compare", "studio"):
        studio.page.go_back()
        studio.until("(screen) => document.body.dataset.screen === screen", screen)
    assert studio.setting("with") == ["Red", "Left"]
    assert "with=Red,Left" in studio.page.url
    digest = studio.digest
    assert visit(studio.page.url).settle().digest == digest


def test_back_goes_to_the_screen_before(visit):
    studio = visit().settle()
    studio.page.locator("[data-screen=compare]").click()
    studio.page.locator("[data-screen=photo]").click()
    assert "screen=photo" in studio.page.url
    studio.page.go_back()
    studio.until("() => document.body.dataset.screen === 'compare'")
    studio.page.go_back()
    studio.until("() => document.body.dataset.screen === 'studio'")
    assert studio.page.locator(".gj-stage").is_visible()
    studio.page.go_forward()
    studio.until("() => document.body.dataset.screen === 'compare'")


def test_neighbouring_pictures_do_not_bleed(visit):
    """A picture's edge on the canvas is made of its own pixels alone."""
    studio = visit(chains=4).settle()
    worst = studio.page.evaluate(
        """async () => {
          const lane = window.gibbsJem.shown().lanes[0], image = new Image();
          image.src = lane.src;
          await image.decode();
          const grid = document.querySelector('.gj-canvas');
          const tile = document.querySelector('.gj-tile').getBoundingClientRect().width;
          const side = Math.round(tile * (grid.width / grid.getBoundingClientRect().width));
          const own = document.createElement('canvas'), large = document.createElement('canvas');
          own.width = own.height = lane.size;
          own.getContext('2d').drawImage(image, 0, 0);
          large.width = large.height = side;
          const context = large.getContext('2d');
          context.imageSmoothingQuality = 'high';
          context.drawImage(own, 0, 0, side, side);
          const wanted = context.getImageData(0, 0, side, side).data;
          const seen = grid.getContext('2d').getImageData(0, 0, side, side).data;
          let worst = 0;
          for (let y = 20; y < side - 20; y++) for (let c = 0; c < 3; c++) {
            const i = 4 * (y * side + side - 3) + c;
            worst = Math.max(worst, Math.abs(wanted[i] - seen[i]));
          }
          return worst;
        }"""
    )
    assert worst < 12
