"""Everything else on the first screen, each driven once and checked by what is on the page."""

import io
import re
from pathlib import Path

import pytest
from driver import Studio
from PIL import Image
from serve import start_server, stop_server


def _standing(visit, **settings) -> Studio:
    studio = visit(**({"steps": 6} | settings))
    studio.wait_state("paused")
    studio.still()
    return studio


def test_the_badge_counts_training_images(visit, tiny_bundle):
    studio = visit(**{"with": ["Red"]})
    total = tiny_bundle.support.total
    studio.until("() => document.querySelector('.gj-badge').dataset.kind === 'seen'")
    assert re.fullmatch(rf"\d+ of {total} training images have this combination\.", studio.text(".gj-badge span"))
    studio.chip("Striped").click()  # held out together with Red
    studio.until("() => document.querySelector('.gj-badge').dataset.kind === 'novel'")
    assert studio.text(".gj-badge span") == f"0 of {total} training images: never seen together."


def test_surprise_asks_for_what_was_never_seen_and_clear_for_nothing(visit):
    studio = visit()
    studio.press("surprise")
    studio.until("() => document.querySelector('.gj-badge').dataset.kind === 'novel'")
    assert {"Red", "Striped"} <= set(studio.setting("with"))
    studio.press("clear")
    studio.until("() => document.querySelector('.gj-badge').dataset.kind === 'any'")
    assert studio.text(".gj-asked") == "You ask for nothing in particular"
    assert "free=1" in studio.page.url


def test_presets_set_the_chips(visit):
    studio = visit()
    preset = studio.page.locator(".gj-preset", has_text="Bright")
    preset.click()
    assert studio.chip("Bright").get_attribute("data-state") == "with"
    assert studio.chip("Red").get_attribute("data-state") == "free"
    assert preset.get_attribute("aria-pressed") == "true"


def test_both_samplers_side_by_side_from_the_same_noise(visit):
    studio = _standing(visit)
    studio.choose("compare", "samplers")
    studio.until("() => window.gibbsJem.shown().lanes.length === 2")
    studio.still()
    lanes = studio.page.evaluate("window.gibbsJem.shown().lanes.map((lane) => [lane.title, lane.src])")
    assert [title for title, _ in lanes] == ["Marginalizing", "Resampling"]
    assert lanes[0][1] == lanes[1][1]  # the same noise
    for _ in range(3):
        studio.act("step")
    first, second = studio.page.evaluate("window.gibbsJem.shown().lanes.map((lane) => lane.src)")
    assert first != second
    assert studio.page.locator(".gj-tile").count() == 8


def test_two_models_side_by_side(visit):
    studio = _standing(visit, compare="models")
    lanes = studio.page.evaluate("window.gibbsJem.shown().lanes.map((lane) => [lane.title, lane.n])")
    assert lanes == [["tiny (Gibbs-JEM)", 4], ["tiny-jem (factored JEM)", 4]]


@pytest.mark.parametrize("start", ["informed", "uniform", "buffer-match", "buffer-any"])
def test_every_start_shows_other_images(visit, start):
    studio = _standing(visit, steps=1, **{"with": ["Red"]})
    conditional = studio.digest
    studio.choose("start", start)
    studio.until(
        "(old) => { const d = document.querySelector('.gj-canvas').dataset; return d.digest && d.digest !== old; }",
        conditional,
    )
    assert f"start={start}" in studio.page.url
    studio.act("step")
    assert studio.step == 1
    studio.choose("start", "conditional")
    studio.act("step")
    studio.until("(old) => document.querySelector('.gj-canvas').dataset.digest === old", conditional)


def test_the_sampler_changes_without_new_chains(visit):
    studio = _standing(visit)
    studio.choose("sampler", "resampling")
    studio.act("step")
    assert studio.step == 7
    assert "sampler=resampling" in studio.page.url


def test_advanced_fields_show_the_models_own_values_and_the_temperature(visit):
    studio = _standing(visit)
    field = studio.page.locator("[data-key=noise_std]")
    assert field.get_attribute("placeholder") == "0.001"
    studio.until("() => document.querySelector('.gj-temperature').textContent === '5e-07'")
    studio.choose("noise_std", "0.1")
    studio.until("() => document.querySelector('.gj-temperature').textContent === '0.005'")
    studio.choose("noise_std", "7")
    assert field.input_value() == "1"  # brought into range
    studio.choose("noise_std", "")
    assert studio.setting("noise_std") is None


def test_the_number_of_chains_and_the_seed(visit):
    studio = _standing(visit)
    before = studio.digest
    studio.choose("chains", "9")
    studio.until("() => document.querySelectorAll('.gj-tile').length === 9")
    studio.choose("seed", "5")
    studio.until("() => window.gibbsJem.store.step === 0")
    studio.still()
    assert studio.digest != before
    assert "seed=5" in studio.page.url
    studio.page.locator("[data-do=dice]").click()
    studio.until("() => window.gibbsJem.store.settings.seed !== 5")


def test_keep_the_best_shows_progress_and_then_the_best(visit):
    studio = _standing(visit, **{"with": ["Red"]})
    studio.page.evaluate(
        """() => { window.progress = []; const bar = document.querySelector('.gj-progress');
        const note = () => window.progress.push(Number(bar.getAttribute('aria-valuenow')));
        new MutationObserver(note).observe(bar, { attributes: true }); }"""
    )
    before = studio.digest
    studio.press("best")
    studio.until(
        "() => document.querySelector('#gj-studio .gj-message span').textContent.startsWith('The best 4 of 40')"
    )
    studio.still()
    assert studio.digest != before
    progress = studio.page.evaluate("window.progress.filter((value) => value > 0)")
    assert progress == sorted(progress)
    assert len(set(progress)) > 1
    assert studio.state == "paused"


def test_the_chain_view(visit):
    studio = visit(speed=20, **{"with": ["Red"], "sampler": "resampling"})
    studio.wait_step(40)
    studio.page.locator(".gj-tile").nth(2).click()
    detail = studio.page.locator(".gj-detail")
    assert detail.locator("h2").inner_text() == "Chain 3 of 4"
    assert detail.locator(".gj-bars li").count() == 6
    bars = [detail.locator(".gj-bars em").nth(k).inner_text() for k in range(6)]
    assert all(re.fullmatch(r"\d+ %", bar) for bar in bars)
    assert "flips; the last:" in detail.locator(".gj-flips small").inner_text()
    for canvas in ("energy", "grad", "flips"):
        drawn = detail.locator(f"[data-detail={canvas}]").evaluate(
            "(c) => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((value) => value > 0)"
        )
        assert drawn, canvas
    live = int(detail.locator(".gj-large").get_attribute("data-step"))
    detail.locator("input[type=range]").fill("2")
    studio.until("() => Number(document.querySelector('.gj-large').dataset.step) < 30")
    past = int(detail.locator(".gj-large").get_attribute("data-step"))
    assert past < live
    assert detail.locator("output").inner_text() == f"step {past}"
    detail.locator("[data-go=after]").click()
    studio.until("() => document.querySelector('.gj-detail h2').textContent === 'Chain 4 of 4'")
    studio.page.keyboard.press("Escape")
    assert detail.is_hidden()


def test_png_gif_and_webp_of_the_run(visit, tmp_path):
    studio = visit(steps=12, speed=30)
    studio.wait_state("paused")
    studio.still()
    studio.page.locator(".gj-take summary").click()
    for kind, frames in (("png", 1), ("gif", 5), ("webp", 5)):
        with studio.page.expect_download() as waiting:
            studio.page.locator(f"[data-take={kind}]").click()
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        assert path.suffix == f".{kind}"
        picture = Image.open(io.BytesIO(path.read_bytes()))
        assert getattr(picture, "n_frames", 1) >= frames
        assert min(picture.size) > 100


def test_a_link_brings_back_the_same_images_bit_for_bit(visit):
    settings = {"with": ["Red", "Dotted"], "without": ["Left"], "sampler": "resampling", "start": "uniform", "seed": 11}
    studio = visit(**settings, guidance=2.5, noise_std=0.02, augment_every=3, steps=17, speed=60)
    studio.wait_state("paused")
    studio.still()
    studio.page.locator(".gj-take summary").click()
    link = studio.page.evaluate("window.gibbsJem.shareLink()")
    assert "steps=17" in link
    assert studio.step == 17
    again = visit(address=link)
    again.wait_state("paused")
    again.still()
    assert again.step == 17
    assert again.digest == studio.digest
    assert again.pixels() == studio.pixels()


def test_a_bad_link_is_put_right_and_said(visit):
    studio = visit(chains=9999, seed="x", sampler="dice", **{"with": ["Red", "Nonsense"]})
    assert studio.setting("chains") == 64
    assert studio.setting("seed") == 0
    assert studio.setting("with") == ["Red"]
    assert "left out: with, sampler, seed" in studio.text(".gj-message span")


def test_the_recipes_name_what_is_on_screen(visit):
    studio = visit(seed=3, **{"with": ["Red"], "without": ["Left"]})
    studio.page.locator(".gj-take summary").click()
    studio.until("() => document.querySelector('[data-code=command]').textContent.includes('--seed 3')")
    command = studio.text("[data-code=command]")
    assert command.startswith("python -m train sample tiny --with Red --without Left -n 4")
    assert "jem_core.sample(" in studio.text("[data-code=python]")


def test_the_model_picker(visit):
    studio = visit()
    studio.choose("model", "tiny-jem")
    studio.until("() => window.gibbsJem.shown().lanes[0].title === 'tiny-jem (factored JEM)'")
    assert "model=tiny-jem" in studio.page.url
    assert "on CPU" in studio.text(".gj-credit")


def test_a_spent_run_rests_and_continues(models: list[Path], new_context, tmp_path):
    server = start_server(tmp_path / "log.txt", models, GIBBS_JEM_RUN_STEPS="10")
    try:
        studio = Studio(new_context().new_page(), server.url).open(model="tiny", chains=4)
        studio.wait_state("resting")
        studio.still()
        assert studio.step == 10
        button = studio.page.locator("[data-do=toggle]")
        assert button.inner_text() == "Continue"
        button.click()
        studio.wait_step(20)
        studio.clean()
    finally:
        stop_server(server)


def test_chains_rest_under_one_wish_and_walk_on_under_the_next(visit):
    studio = visit(rest=12)
    studio.wait_state("resting")
    studio.still()
    assert studio.step == 12
    studio.until("() => document.querySelector('#gj-studio .gj-message')?.textContent.startsWith('The chains')")
    studio.chip("Framed").click()
    studio.wait_step(24)
    studio.wait_state("resting")
    studio.clean()


def test_a_run_that_waits_for_a_place_says_so(models: list[Path], new_context, tmp_path):
    server = start_server(tmp_path / "log.txt", models, GIBBS_JEM_RUNS_AT_ONCE="1", GIBBS_JEM_RUN_SECONDS="3600")
    try:
        first = Studio(new_context().new_page(), server.url).open(model="tiny", chains=4)
        second = Studio(new_context().new_page(), server.url)
        second.page.goto(f"{server.url}/?model=tiny&chains=4&rest=0")
        second.until(
            "() => document.querySelector('#gj-studio .gj-message')?.textContent.startsWith('All places are taken')"
        )
        first.pause()
        second.until("() => window.gibbsJem.counters.frames > 3")
        first.clean()
        second.clean()
    finally:
        stop_server(server)


def test_light_and_dark_by_hand(visit):
    studio = visit()
    paper = "() => getComputedStyle(document.querySelector('.gradio-container')).getPropertyValue('--gj-paper').trim()"
    before = studio.page.evaluate(paper)
    studio.page.locator(".gj-theme").click()
    assert studio.page.evaluate(paper) != before
