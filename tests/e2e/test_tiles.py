"""One picture: large, starred, locked, more like it, saved alone; undo; from A to B. By mouse and by keyboard."""

import io

import pytest
from PIL import Image

BY = pytest.mark.parametrize("by", ["mouse", "keyboard"])
KEYS = {"star": "s", "lock": "l", "like": "m", "save": "d"}


def use(studio, chain: int, what: str, by: str) -> None:
    """A button of one picture, or its key."""
    tile = studio.tile(chain)
    if by == "mouse":
        tile.hover()
        tile.locator(f"[data-tile={what}]").click()
    else:
        tile.locator(".gj-open").focus()
        studio.page.keyboard.press(KEYS[what])


@BY
def test_a_locked_picture_stays_while_the_others_change(visit, by):
    studio = visit(**{"with": ["Red"]}).settle()
    kept, other = studio.picture(1), studio.picture(2)
    use(studio, 1, "lock", by)
    assert "gj-locked" in studio.tile(1).get_attribute("class")
    studio.toggle("Left")
    assert studio.picture(1) == kept
    assert studio.picture(2) != other
    assert "some pictures were locked" in studio.store("why")
    use(studio, 1, "lock", by)
    studio.toggle("Bright")
    assert studio.picture(1) != kept


def test_a_locked_picture_stays_when_the_others_begin_anew(visit):
    studio = visit(**{"with": ["Red"]}).settle()
    kept, other = studio.picture(1), studio.picture(2)
    use(studio, 1, "lock", "mouse")
    studio.press("main")
    studio.until("() => window.gibbsJem.store.settings.seed !== 0")
    studio.settle()
    assert studio.picture(1) == kept
    assert studio.picture(2) != other
    assert "gj-locked" in studio.tile(1).get_attribute("class")
    assert "some pictures were locked" in studio.store("why")
    studio.toggle("Left")
    assert studio.picture(1) == kept
    epoch = studio.store("epoch")
    studio.press("clear")  # a combination of its own: nothing of the old pictures is left
    studio.until("(epoch) => window.gibbsJem.counters.shownEpoch !== epoch", epoch)
    studio.settle()
    assert studio.picture(1) != kept
    assert "gj-locked" not in studio.tile(1).get_attribute("class")


@BY
def test_more_like_this(visit, by):
    studio = visit(**{"with": ["Red"]}).settle()
    kept, epoch = studio.picture(2), studio.store("epoch")
    use(studio, 2, "like", by)
    studio.until("(epoch) => window.gibbsJem.counters.shownEpoch !== epoch", epoch)
    studio.settle()
    assert studio.picture(2) == kept
    assert len({studio.picture(i) for i in range(4)}) == 4


@BY
def test_a_star_keeps_a_picture_for_the_next_visit(visit, by):
    studio = visit().settle()
    for stars in (1, 0, 1):  # the same button takes it back
        use(studio, 0, "star", by)
        assert studio.page.locator(".gj-starred img").count() == stars
    assert studio.tile(0).locator("[data-tile=star]").get_attribute("aria-pressed") == "true"
    studio.reload()
    studio.until("() => document.querySelectorAll('.gj-starred img').length === 1")
    studio.page.locator(".gj-starred button").click()
    assert studio.page.locator(".gj-starred").is_hidden()
    studio.settle()


@BY
def test_one_picture_is_saved_large_with_its_name(visit, tmp_path, by):
    studio = visit(**{"with": ["Red"]}).settle()
    with studio.page.expect_download() as waiting:
        use(studio, 3, "save", by)
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    picture = Image.open(io.BytesIO(path.read_bytes()))
    assert path.name == "gibbs-jem-red-4.png"
    assert picture.size == (512, 512)
    assert picture.text["Title"] == "Gibbs-JEM Studio"
    assert picture.text["Description"] == "red (tiny-levels (noise levels), seed 0)"


@BY
def test_undo_brings_back_the_very_pictures(visit, by):
    studio = visit(**{"with": ["Red"]}).settle()
    first = studio.digest
    assert studio.page.locator(".gj-past").is_hidden()
    studio.toggle("Left")
    second = studio.digest
    studio.press("main")  # new pictures: they can be undone too
    studio.until(
        "(old) => { const d = document.querySelector('.gj-canvas').dataset.digest; return d && d !== old; }", second
    )
    studio.settle()
    states = studio.page.locator(".gj-past [data-state]")
    assert states.count() == 3
    if by == "mouse":
        studio.press("undo")
    else:
        studio.page.locator("[data-do=undo]").focus()
        studio.page.keyboard.press("Enter")
    studio.until("(old) => document.querySelector('.gj-canvas').dataset.digest === old", second)
    assert studio.setting("with") == ["Red", "Left"]
    assert studio.chip("Left").get_attribute("data-state") == "with"
    states.first.click()
    studio.until("(old) => document.querySelector('.gj-canvas').dataset.digest === old", first)
    assert studio.setting("with") == ["Red"]
    assert states.first.get_attribute("aria-current") == "true"


def test_undo_goes_back_to_another_model(visit):
    studio = visit(**{"with": ["Red"]}).settle()
    first = studio.digest
    studio.choose("model", "tiny")
    studio.until("() => window.gibbsJem.shown().lanes[0].title.startsWith('tiny (')")
    studio.settle()
    studio.press("undo")
    studio.until("(old) => document.querySelector('.gj-canvas').dataset.digest === old", first)
    assert studio.setting("model") == "tiny-levels"
    assert studio.page.locator(".gj-gauge").is_visible()


@BY
def test_from_one_condition_to_another(visit, tmp_path, by):
    studio = visit(**{"with": ["Red"]}).settle()
    studio.fold_out(".gj-path")
    do = {
        "mouse": lambda node: node.click(),
        "keyboard": lambda node: (node.focus(), studio.page.keyboard.press("Enter")),
    }
    do[by](studio.page.locator("[data-do=end-a]"))
    studio.toggle("Left")
    do[by](studio.page.locator("[data-do=end-b]"))
    assert studio.text("[data-end=a] span") == "red"
    assert studio.text("[data-end=b] span") == "red, left"
    do[by](studio.page.locator("[data-do=path]"))
    strip = studio.page.locator(".gj-strip")
    strip.wait_for()
    assert strip.evaluate("(node) => node.naturalWidth / node.naturalHeight") == 11
    assert strip.get_attribute("alt") == "From red to red, left, in 11 pictures"
    with studio.page.expect_download() as waiting:
        do[by](studio.page.locator("[data-take=path]"))
    assert waiting.value.suggested_filename == "gibbs-jem-from-a-to-b.webp"


def test_from_one_picture_to_another(visit):
    studio = visit(**{"with": ["Red"]}).settle()
    studio.tile(0).locator(".gj-open").click()
    studio.page.locator("[data-tile=end-a]").click()
    studio.page.locator("[data-go=after]").click()
    studio.page.locator("[data-tile=end-b]").click()
    studio.press("path")
    studio.page.locator(".gj-strip").wait_for()
    assert studio.page.locator("[data-end=a] canvas").is_visible()


def test_a_picture_large_with_its_past(visit):
    studio = visit(**{"with": ["Red"]}).settle()
    studio.toggle("Left")
    studio.tile(2).locator(".gj-open").click()
    detail = studio.page.locator(".gj-detail")
    assert detail.locator("h2").inner_text() == "Picture 3 of 4"
    assert detail.locator(".gj-bars li").count() == 6
    large = detail.locator(".gj-large")
    assert int(large.get_attribute("data-step")) == studio.step, "the large picture is not behind"
    slider = detail.locator(".gj-scrub input")
    slider.fill("0")
    studio.until("() => Number(document.querySelector('.gj-large').dataset.step) < 3")
    for name in ("energy", "grad", "flips"):
        box = detail.locator(f"[data-detail={name}]").bounding_box()
        assert box["width"] > 200, f"{name} has room"
    detail.locator("[data-go=after]").click()
    studio.until("() => document.querySelector('.gj-detail h2')?.textContent === 'Picture 4 of 4'")
    studio.page.keyboard.press("Escape")
    assert detail.is_hidden()


def test_the_large_picture_keeps_up_while_running(visit):
    studio = visit(moving=1)
    studio.tile(0).locator(".gj-open").click()
    studio.wait_step(30)
    behind = studio.page.evaluate(
        """() => new Promise((resolve) => { const lags = []; const look = () => {
          lags.push(window.gibbsJem.counters.shownStep - Number(document.querySelector('.gj-large').dataset.step));
          if (lags.length < 40) requestAnimationFrame(look); else resolve(Math.max(...lags)); }; look(); })"""
    )
    assert behind == 0
    studio.pause()


def test_one_step_taken_apart(visit):
    studio = visit().settle()
    stood = studio.digest
    studio.fold_out(".gj-hood")
    studio.press("hood")
    studio.until("() => document.querySelectorAll('.gj-hood-shown article').length === 2")
    assert "add a little noise" in studio.text(".gj-hood-shown")
    assert studio.digest == stood
    studio.press("six")
    studio.until("() => document.querySelectorAll('.gj-hood-shown article').length === 6")
