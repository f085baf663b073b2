"""The second screen in a real browser: a picture in, rows and a plot out, and on to the chains."""

import json
import re
import time
from pathlib import Path

from playwright.sync_api import Page
from serve import ROOT


def upload(page: Page, file: Path) -> float:
    """Seconds from the choice of a file to the drawn plot."""
    page.wait_for_function("() => window.gibbsJem?.photoScreen?.models.length > 0")
    began = time.monotonic()
    page.set_input_files("[data-photo=file]", file)
    page.wait_for_selector(".gjp-row")
    page.wait_for_selector("#gj-photo-plot .js-plotly-plot .main-svg")
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
    count = int(re.search(r"(?:Of|Only) ([\d,]+) held-out", sentence)[1].replace(",", ""))
    assert count == bins["count"][i]
    if count >= 30:
        assert f"{100 * bins['positive_rate'][i]:.0f} % had it" in sentence
        assert f"interval {100 * bins['low'][i]:.0f} to {100 * bins['high'][i]:.0f} %" in sentence
    else:
        assert "too few to say" in sentence
    assert page.locator(".gjp-row").count() == 6
    assert "memory only" in page.locator(".gjp-kept").inner_text()
    with capsys.disabled():
        print(f"\nupload to drawn plot: {seconds[0]:.1f} s")


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


def test_editing_starts_the_chains_from_the_picture(visitor):
    page = visitor("photo")
    upload(page, ROOT / "assets" / "examples" / "astronaut.jpg")
    page.locator("[data-photo=edit]").click()
    page.wait_for_selector("#gj-studio .gjp-compare canvas")
    settings = page.evaluate("() => window.gibbsJem.store.settings")
    assert settings["start"] == "photo"
    assert len(settings["with"]) + len(settings["without"]) == 6
    page.wait_for_function("() => document.querySelector('.gjp-compare canvas').dataset.step !== undefined")
    page.locator(".gj-chip").first.click()
    page.locator("[data-do=toggle]").click()
    page.wait_for_function("() => window.gibbsJem.counters.shownStep > 3")
    page.locator("[data-screen=photo]").click()
    assert page.locator(".gjp-row").count() == 6  # the second screen is as it was left
    page.wait_for_function("() => !window.gibbsJem.store.playing")  # and the chains rest meanwhile


def test_forget_takes_the_picture_away(visitor):
    page = visitor("photo")
    upload(page, ROOT / "assets" / "examples" / "astronaut.jpg")
    page.locator("[data-photo=forget]").click()
    page.wait_for_selector("#gj-photo .gjp-shown", state="hidden")
    assert page.locator(".gjp-row").count() == 0
