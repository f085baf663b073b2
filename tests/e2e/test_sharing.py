"""Links, recipes, pictures and animations: what a visitor takes along is what was on screen."""

import io

import pytest
from PIL import Image


def link_of(studio) -> str:
    studio.fold_out(".gj-take")
    return studio.page.evaluate("window.gibbsJem.shareLink()")


@pytest.mark.parametrize("model", ["tiny", "tiny-levels"])
def test_a_link_brings_back_the_same_pictures_bit_for_bit(visit, model):
    settings = {"with": ["Red", "Dotted"], "without": ["Left"], "sampler": "resampling", "seed": 11, "guidance": 2.5}
    studio = visit(model=model, **settings).settle()
    link = link_of(studio)
    assert studio.text(".gj-link-note") == "The link restores these very pictures."
    again = visit(address=link).settle()
    assert again.digest == studio.digest
    assert again.pixels() == studio.pixels()


@pytest.mark.parametrize("model", ["tiny", "tiny-levels"])
def test_a_link_brings_back_what_came_of_changes_and_a_change_there_works(visit, model):
    studio = visit(model=model, **{"with": ["Red"]}).settle()
    studio.toggle("Left")
    studio.chip("Bright").click()  # not waited for
    studio.page.wait_for_timeout(150)
    studio.chip("Bright").click()
    studio.settle()
    link = link_of(studio)
    assert "walk=" in link
    assert studio.text(".gj-link-note").startswith("The link restores these very pictures: it repeats the same changes")
    again = visit(address=link)
    assert again.text(".gj-message span") == "This link repeats the same changes, one after another."
    again.until("(digest) => document.querySelector('.gj-canvas').dataset.digest === digest", studio.digest)
    assert again.pixels() == studio.pixels()
    assert again.setting("without") == ["Bright"]
    for page in (studio, again):
        page.toggle("Framed")
    assert again.digest == studio.digest, "and they go on as they would have gone on"


def test_a_link_from_the_middle_stops_in_the_middle(visit):
    studio = visit(speed=1)
    studio.wait_step(1)
    studio.pause()
    assert studio.state == "paused"
    link = link_of(studio)
    again = visit(address=link)
    again.until("(digest) => document.querySelector('.gj-canvas').dataset.digest === digest", studio.digest)
    assert again.state == "paused"


def test_a_link_says_what_it_cannot_restore(visit):
    studio = visit(**{"with": ["Red"]}).settle()
    studio.tile(0).hover()
    studio.tile(0).locator("[data-tile=lock]").click()
    studio.toggle("Left")
    studio.fold_out(".gj-take")
    studio.until("() => document.querySelector('.gj-link-note')?.textContent.includes('but not these pictures')")
    assert "because some pictures were locked" in studio.text(".gj-link-note")
    studio.until("() => !document.querySelector('.gj-recipe-note').hidden")
    assert "cannot be made again" in studio.text(".gj-recipe-note")
    assert "walk=" not in link_of(studio)


def test_a_bad_link_is_put_right_and_said(visit):
    studio = visit(chains=9999, seed="x", sampler="dice", **{"with": ["Red", "Nonsense"]})
    assert studio.setting("chains") == 64
    assert studio.setting("seed") == 0
    assert studio.setting("with") == ["Red"]
    words = studio.text(".gj-message span")
    assert "were ignored: Required, Seed, Sampler." in words
    assert "Pictures: 9999 is out of range. Choose 1 to 64 on this server." in words


def test_a_link_with_a_broken_walk_is_refused_with_a_sentence(visit):
    studio = visit().settle()
    studio.page.goto(f"{studio.url}/?model=tiny-levels&chains=4&with=Red&walk=Red;Nobody")
    studio.until(
        "() => document.querySelector('.gj-message span')?.textContent.includes(\"There is no attribute 'Nobody'\")"
    )
    studio.chip("Left").click()
    studio.settle()


def test_the_recipes_name_what_is_on_screen(visit):
    studio = visit(seed=3, **{"with": ["Red"], "without": ["Left"]}).settle()
    studio.fold_out(".gj-take")
    studio.until("() => document.querySelector('[data-code=command]')?.textContent.includes('--seed 3')")
    command = studio.text("[data-code=command]")
    assert command.startswith("python -m train sample tiny-levels --with Red --without Left -n 4")
    assert "jem_core.sample(" in studio.text("[data-code=python]")
    studio.toggle("Bright")
    studio.until("() => document.querySelector('[data-code=command]')?.textContent.includes('train steer')")
    assert "--walk=-Left+Red; Bright" in studio.text("[data-code=command]").replace("'", "")


def test_png_gif_and_webp(visit, tmp_path):
    studio = visit(**{"with": ["Red"]}).settle()
    studio.toggle("Left")
    studio.fold_out(".gj-take")
    for kind, frames in (("png", 1), ("gif", 5), ("webp", 5)):
        with studio.page.expect_download() as waiting:
            studio.page.locator(f"[data-take={kind}]").click()
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        assert path.name == f"gibbs-jem-red-left.{kind}"
        assert path.stat().st_size < 3_000_000
        picture = Image.open(io.BytesIO(path.read_bytes()))
        assert getattr(picture, "n_frames", 1) >= frames
        assert min(picture.size) > 100
        if kind == "png":
            assert picture.text["Description"].startswith("red, left")


def test_a_shared_page_has_a_face_of_its_own(visit):
    studio = visit()
    tags = studio.page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('meta[property^=og]')].map((m) =>"
        " [m.getAttribute('property'), m.content]))"
    )
    assert studio.page.title() == "Gibbs-JEM Studio"
    assert tags["og:title"] == "Gibbs-JEM Studio"
    assert tags["og:description"].startswith("Choose attributes")
    assert tags["og:image"].startswith(studio.url)
    size = studio.page.evaluate(
        "async (src) => { const i = new Image(); i.src = src; await i.decode(); return [i.width, i.height]; }",
        tags["og:image"],
    )
    assert size == [1200, 630]
    assert studio.page.locator("link[rel=icon][type='image/svg+xml']").count() >= 1


def test_how_much_may_change_is_part_of_the_changes_that_were_made(visit):
    """With another value the same changes would lead to other pictures, so the link does not claim to repeat them."""
    studio = visit(**{"with": ["Red"]}).settle()
    studio.toggle("Left")
    slider = studio.page.locator(".gj-lift input")
    slider.fill("1")
    slider.dispatch_event("change")
    assert "walk=" not in link_of(studio)
    assert "but not these pictures, because settings changed on the way" in studio.text(".gj-link-note")
    studio.until("() => !document.querySelector('.gj-recipe-note').hidden")
    assert "because settings changed on the way" in studio.text(".gj-recipe-note")
    assert "walk=" not in studio.page.url
