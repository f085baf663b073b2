"""The second screen in a real browser: a picture in, rows and a plot out, and on to the chains."""

import json
import re
import time
from pathlib import Path

import pictures
import pytest
from PIL import Image
from playwright.sync_api import Page
from serve import ROOT

IN_VIEW = """(selector) => {
  const box = document.querySelector(selector)?.getBoundingClientRect();
  return box?.height > 0 && box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
}"""


def upload(page: Page, file: Path) -> float:
    """Seconds from the choice of a file to the drawn plot."""
    page.wait_for_function("() => window.gibbsJem?.photoScreen?.models.length > 0")
    began = time.monotonic()
    page.set_input_files("[data-photo=file]", file)
    page.wait_for_selector(".gjp-row")
    page.wait_for_selector("#gj-photo-plot .js-plotly-plot .main-svg", state="attached")  # a phone shows it later
    return time.monotonic() - began


def test_upload_shows_the_numbers_of_the_calibration_file(visitor, evaluated, capsys):
    page = visitor("photo")
    seconds = [upload(page, ROOT / "assets" / "examples" / "astronaut.jpg")]
    page.locator(".gjp-row").first.click()
    name = page.locator(".gjp-row").first.get_attribute("data-name")
    sentence = page.locator(".gjp-sentence").inner_text()
    bins = json.loads((evaluated / "calibration.json").read_text())["attributes"][name]["bins"]
    p = page.evaluate("() => window.gibbsJem.photoScreen.reply.rows[0].p")
    i = max(k for k, edge in enumerate(bins["edges"][:-1]) if edge <= p)
    found = re.search(r"(?:Of|Only) ([\d,]+) test picture", sentence)
    count = int(found[1].replace(",", "")) if found else 0
    assert count == bins["count"][i]
    if count >= 30:
        low, high = (f"{100 * bins[key][i]:.0f}" for key in ("low", "high"))
        assert f"{100 * bins['positive_rate'][i]:.0f} % ({low} to {high}) really had it" in sentence
    else:
        assert ("too few to say" if count else "nothing to compare with") in sentence
    assert page.locator(".gjp-row").count() == 6
    assert "never on its disk" in page.locator(".gjp-kept").inner_text()
    with capsys.disabled():
        print(f"\nupload to drawn plot: {seconds[0]:.1f} s")


def test_a_small_picture_is_shown_as_large_as_what_the_model_sees(visitor, tmp_path):
    page = visitor("photo")
    small = tmp_path / "small.png"
    Image.open(ROOT / "assets" / "examples" / "astronaut.jpg").resize((64, 64)).save(small)
    upload(page, small)
    whole, seen = (page.locator(selector).bounding_box() for selector in (".gjp-whole", ".gjp-crop"))
    assert whole["width"] == pytest.approx(seen["width"], abs=2)
    assert whole["height"] == pytest.approx(whole["width"], abs=2)


def test_a_bad_file_is_a_sentence_and_the_good_picture_stays(visitor, tmp_path):
    page = visitor("photo")
    upload(page, ROOT / "assets" / "examples" / "astronaut.jpg")
    bad = tmp_path / "picture.png"
    bad.write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'></svg>")
    page.set_input_files("[data-photo=file]", bad)
    page.wait_for_selector("#gj-photo .gj-message:not([hidden])")
    assert "JPEG, PNG" in page.locator("#gj-photo .gj-message span").inner_text()
    assert page.locator(".gjp-row").count() == 6


def test_the_crop_moves_and_is_predicted_anew(visitor):
    page = visitor("photo")
    upload(page, ROOT / "assets" / "examples" / "astronaut.jpg")
    before = page.locator(".gjp-crop").get_attribute("src")
    page.locator(".gjp-adjust summary").click()
    page.locator("[data-box=side]").fill("0.4")
    page.wait_for_function("(before) => document.querySelector('.gjp-crop').src !== before", arg=before)
    page.locator("[data-photo=reset]").click()
    page.wait_for_function("(before) => document.querySelector('.gjp-crop').src === before", arg=before)


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_a_click_shows_sentence_and_curve_in_view(visitor, width, height):
    page = visitor("photo")
    page.set_viewport_size({"width": width, "height": height})
    upload(page, ROOT / "assets" / "examples" / "astronaut.jpg")
    row = page.locator(".gjp-row").last
    row.scroll_into_view_if_needed()
    row.click()
    label = row.locator("span").first.inner_text()
    page.wait_for_function("(label) => document.querySelector('#gj-photo-curve h2')?.textContent === label", arg=label)
    for part in (".gjp-sentence", "#gj-photo-plot .js-plotly-plot .main-svg"):  # the plot is drawn anew by the click
        page.wait_for_function(IN_VIEW, arg=part)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_a_change_shows_before_and_after(visitor):
    page = visitor("photo")
    upload(page, ROOT / "assets" / "examples" / "astronaut.jpg")
    if page.locator(".gjp-edit").is_hidden():  # an untrained model finds every portrait strange
        page.evaluate("() => { document.querySelector('.gjp-edit').hidden = false; }")
    page.locator(".gjp-chips .gj-chip").first.click()
    page.wait_for_selector(".gjp-result:not([hidden])")
    assert page.locator(".gjp-variants img").count() == 4
    assert page.locator(".gjp-before").get_attribute("src") == page.locator(".gjp-crop").get_attribute("src")
    assert page.locator(".gjp-after").get_attribute("src").startswith("data:image/png")
    page.locator("[data-photo=split]").fill("0.1")
    assert page.evaluate("() => getComputedStyle(document.querySelector('.gjp-ba')).getPropertyValue('--cut')") == "0.1"
    with page.expect_download() as saved:
        page.locator("[data-photo=save]").click()
    assert saved.value.suggested_filename == "edited.png"


@pytest.mark.parametrize(("what", "model", "greyed"), [("portrait", "celeba", False), ("landscape", "shoes", True)])
def test_what_the_model_does_not_know_is_greyed(visitor, tmp_path, what, model, greyed):
    page = visitor("photo")
    page.wait_for_function("() => window.gibbsJem?.photoScreen?.models.length > 0")
    page.select_option("[data-photo=model]", model)
    file = pictures.PORTRAIT
    if what == "landscape":
        file = tmp_path / "landscape.png"
        pictures.landscape().save(file)
    upload(page, file)
    rows = page.locator("#gj-photo-rows .gjp-rows")
    assert (rows.evaluate("(rows) => Number(getComputedStyle(rows).opacity)") < 1) == greyed
    assert page.locator(".gjp-edit").is_hidden() == greyed
    said = page.locator(".gjp-gate").inner_text()
    assert ("do not trust these numbers." in said) == greyed
    assert ("Typical: more so than" in said) != greyed


def test_an_avatar_shows_the_truth(visitor):
    page = visitor("photo")
    page.wait_for_function("() => window.gibbsJem?.photoScreen?.models.length > 0")
    page.select_option("[data-photo=model]", "avatars")
    page.locator("[data-photo=avatar]").click()
    page.wait_for_selector(".gjp-row s")
    rows = page.evaluate("() => window.gibbsJem.photoScreen.reply.rows")
    shown = page.locator(".gjp-row s").all_inner_texts()
    assert shown == [
        f"{'✓' if (row['p'] > 0.5) == row['truth'] else '✗'} {'yes' if row['truth'] else 'no'}" for row in rows
    ]
    assert page.locator(".gjp-known").is_visible()
    page.select_option("[data-photo=model]", "celeba")
    page.wait_for_selector(".gjp-row[data-name=Attractive]")
    assert page.locator(".gjp-row[data-name=Attractive] s").inner_text() == ""  # nobody knows that of an avatar
    assert re.fullmatch("[✓✗] (yes|no)", page.locator(".gjp-row[data-name=Smiling] s").inner_text())


def test_the_studio_begins_at_the_picture_and_forget_ends_that(visitor):
    page = visitor("photo")
    upload(page, ROOT / "assets" / "examples" / "astronaut.jpg")
    page.evaluate("() => { document.querySelector('.gjp-edit').hidden = false; }")
    page.locator("[data-photo=studio]").click()
    page.wait_for_function("() => window.gibbsJem.store.settings.start === 'photo'")
    settings = page.evaluate("() => window.gibbsJem.store.settings")
    assert len(settings["with"]) + len(settings["without"]) == 6
    page.wait_for_function("() => window.gibbsJem.counters.shownStep > 0")
    page.locator("[data-screen=photo]").click()
    assert page.locator(".gjp-row").count() == 6  # the second screen is as it was left
    page.locator("[data-photo=forget]").click()
    page.wait_for_selector("#gj-photo .gjp-shown", state="hidden")
    page.wait_for_function("() => window.gibbsJem.store.settings.start !== 'photo'")
    assert "Your picture was deleted." in page.locator("#gj-photo .gj-message span").inner_text()


def test_forget_takes_the_picture_away(visitor):
    page = visitor("photo")
    upload(page, ROOT / "assets" / "examples" / "astronaut.jpg")
    page.locator("[data-photo=forget]").click()
    page.wait_for_selector("#gj-photo .gjp-shown", state="hidden")
    assert page.locator(".gjp-row").count() == 0
    assert page.locator("#gj-photo img[src]").count() == 0


def test_deleting_beats_a_crop_that_was_asked_for_just_before(visitor):
    page = visitor("photo")
    upload(page, ROOT / "assets" / "examples" / "astronaut.jpg")
    page.locator(".gjp-adjust summary").click()
    page.locator("[data-box=side]").fill("0.4")  # it is asked for a moment later
    page.locator("[data-photo=forget]").click()
    page.wait_for_selector("#gj-photo .gjp-shown", state="hidden")
    page.wait_for_timeout(1500)
    assert page.locator("#gj-photo .gj-message span").inner_text() == "Your picture was deleted."
    assert page.locator("#gj-photo img[src]").count() == 0
    assert page.locator(".gjp-row").count() == 0
