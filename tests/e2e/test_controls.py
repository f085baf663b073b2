"""Choices and settings of the first screen, each driven once and checked by what is on the page."""

import re
from pathlib import Path

from serve import start_server, stop_server

BADGE = "(kind) => document.querySelector('.gj-badge').dataset.kind === kind"


def test_the_badge_counts_training_images(visit, tiny_bundle):
    studio = visit(**{"with": ["Red"]})
    total = tiny_bundle.support.total
    studio.until(BADGE, "seen")
    assert re.fullmatch(rf"\d+ of {total} training images have this combination\.", studio.text(".gj-badge span"))
    studio.chip("Striped").click()  # held out together with Red
    studio.until(BADGE, "novel")
    assert studio.text(".gj-badge") == f"Never seen\n0 of {total} training images have this combination."


def test_the_badge_is_that_of_the_combination_on_screen(visit):
    """Whatever brought it there: another screen, another model, an earlier state."""
    studio = visit(**{"with": ["Red"]}).settle()
    studio.page.evaluate("window.gibbsJem.open({ with: ['Red', 'Striped'], without: [] })")
    studio.until(BADGE, "novel")
    studio.settle()
    studio.press("undo")
    studio.until(BADGE, "seen")
    studio.settle()
    studio.choose("model", "tiny")
    studio.until("() => window.gibbsJem.shown().lanes[0].title.startsWith('tiny (')")
    studio.settle()
    studio.press("clear")
    studio.until(BADGE, "any")
    assert studio.text(".gj-badge") == "No attributes chosen; anything goes."


def test_surprise_asks_for_what_was_never_seen_and_clear_for_nothing(visit):
    studio = visit()
    studio.press("surprise")
    studio.until(BADGE, "novel")
    assert {"Red", "Striped"} <= set(studio.setting("with"))
    studio.press("clear")
    studio.until(BADGE, "any")
    assert studio.text(".gj-asked") == "No attributes chosen; anything goes."
    assert "free=1" in studio.page.url


def test_presets_begin_anew_with_a_cross_fade(visit):
    studio = visit().settle()
    studio.page.evaluate(
        "() => { window.fades = 0; const fade = document.querySelector('.gj-fade'), animate = fade.animate.bind(fade);"
        " fade.animate = (...parts) => { window.fades += 1; return animate(...parts); }; }"
    )
    epoch = studio.store("epoch")
    preset = studio.page.locator(".gj-preset", has_text="Bright")
    preset.click()
    studio.until("(epoch) => window.gibbsJem.counters.shownEpoch !== epoch", epoch)
    studio.settle()
    assert studio.chip("Bright").get_attribute("data-state") == "with"
    assert studio.chip("Red").get_attribute("data-state") == "free"
    assert preset.get_attribute("aria-pressed") == "true"
    assert studio.page.evaluate("window.fades") == 1
    assert studio.store("walk") == ""
    fresh = visit(**{"with": ["Bright"]}).settle()
    assert fresh.digest == studio.digest, "nothing of the old pictures is left"


def test_exclusive_attributes_switch_each_other_off(visit):
    studio = visit(model="avatars", **{"with": ["Black_Hair"]})
    studio.chip("Blond_Hair").click()
    assert studio.chip("Black_Hair").get_attribute("data-state") == "free"
    assert studio.setting("with") == ["Blond_Hair"]
    shoes = visit(model="shoes", **{"with": ["Brown", "Boots", "Knee_High"]})
    shoes.chip("Red").click()
    assert shoes.setting("with") == ["Boots", "Knee_High", "Red"], "red instead of brown"
    shoes.chip("Sneakers").click()
    assert shoes.setting("with") == ["Red", "Sneakers"]


def test_strengths_are_hidden_until_wanted_and_change_the_pictures(visit):
    studio = visit(**{"with": ["Red"]}).settle()
    before = studio.digest
    slider = studio.page.locator("[data-strength=Red]")
    assert slider.is_hidden()
    studio.fold_out(".gj-strengths")
    epoch = studio.store("epoch")
    slider.fill("4")
    slider.dispatch_event("change")
    studio.until("(epoch) => window.gibbsJem.counters.shownEpoch !== epoch", epoch)
    studio.settle()
    assert studio.digest != before
    assert "strengths=Red:4" in studio.page.url
    assert studio.text(".gj-strengths output") == "4×"


def test_how_much_may_change(visit):
    studio = visit(**{"with": ["Red"]}).settle()
    slider = studio.page.locator(".gj-lift input")
    slider.fill("0")
    slider.dispatch_event("change")
    assert studio.text(".gj-lift output") == "a little"
    assert studio.setting("lift") == 0.5
    slider.fill("1")
    slider.dispatch_event("change")
    assert (studio.text(".gj-lift output"), studio.setting("lift")) == ("everything", 20)
    levels = studio.page.evaluate(
        "() => { window.highest = 0; const { shown } = window.gibbsJem; setInterval(() => {"
        " window.highest = Math.max(window.highest, shown().level); }, 5); }"
    )
    assert levels is None
    studio.toggle("Left")
    assert studio.page.evaluate("window.highest") > 5


def test_both_samplers_side_by_side_from_the_same_noise(visit):
    studio = visit(speed=5).settle()
    studio.choose("compare", "samplers")
    studio.until("() => window.gibbsJem.shown().lanes.length === 2")
    titles = studio.page.evaluate("window.gibbsJem.shown().lanes.map((lane) => lane.title)")
    assert titles == ["Marginalizing", "Resampling"]
    studio.settle()
    assert studio.page.locator(".gj-tile").count() == 8


def test_two_models_side_by_side(visit):
    studio = visit().settle()
    studio.choose("compare", "models")
    studio.until("() => window.gibbsJem.shown().lanes.length === 2")
    assert studio.page.locator("[data-key=beside]").input_value() == studio.page.evaluate(
        "window.gibbsJem.model().rivals[0]"
    ), "the field names the model that stands there"
    studio.choose("beside", "tiny-jem")
    studio.until("() => window.gibbsJem.shown().lanes[1].title === 'tiny-jem (factored JEM)'")
    studio.settle()
    assert studio.text("[data-legend=energy]") == "tiny-levels (noise levels)\ntiny-jem (factored JEM)"


def test_every_start_shows_other_pictures(visit):
    studio = visit(model="tiny", **{"with": ["Red"]}).settle()
    digests = {studio.digest}
    for number, start in enumerate(("informed", "uniform", "buffer-match", "buffer-any"), start=2):
        epoch = studio.store("epoch")
        studio.choose("start", start)
        studio.until("(epoch) => window.gibbsJem.counters.shownEpoch !== epoch", epoch)
        studio.settle()
        digests.add(studio.digest)
        assert len(digests) == number, start
        assert f"start={start}" in studio.page.url


def test_fields_show_the_models_own_values_and_their_limits(visit):
    studio = visit(model="tiny").settle()
    studio.fold_out(".gj-settings")
    field = studio.page.locator("[data-key=noise_std]")
    assert field.get_attribute("placeholder") == "0.001"
    studio.choose("noise_std", "7")
    assert field.input_value() == "1"
    assert studio.text(".gj-message span") == "Noise: 7 is out of range. Choose 0 to 1."
    studio.choose("noise_std", "")
    assert studio.setting("noise_std") is None


def test_the_number_of_pictures_has_a_limit_that_is_said(visit):
    studio = visit().settle()
    studio.choose("chains", "500")
    studio.until("() => document.querySelectorAll('.gj-tile').length === 64")
    assert studio.text(".gj-message span") == "Pictures: 500 is out of range. Choose 1 to 64 on this server."
    assert "At most 64 on this server" in studio.text("[data-fields=settings]")
    linked = visit(chains=500)
    linked.until("() => document.querySelector('.gj-message span')?.textContent.includes('1 to 64')")


def test_the_seed(visit):
    studio = visit().settle()
    before = studio.digest
    studio.choose("seed", "5")
    studio.until("() => window.gibbsJem.counters.shownStep < 6")
    studio.settle()
    assert studio.digest != before
    assert "seed=5" in studio.page.url


def test_keep_the_best_shows_progress_and_leaves_true_plots(visit):
    studio = visit(**{"with": ["Red"]}).settle()
    studio.toggle("Left")
    studio.page.evaluate(
        """() => { window.progress = []; window.words = new Set(); const bar = document.querySelector('.gj-progress');
        const before = window.gibbsJem.store.run;  // what the page still says of it is no concern of this test
        const note = () => { if (window.gibbsJem.store.run === before) return;
          window.progress.push(Number(bar.getAttribute('aria-valuenow')));
          const message = document.querySelector('#gj-studio .gj-message');
          if (!message.hidden) window.words.add(message.textContent); };
        new MutationObserver(note).observe(bar, { attributes: true }); }"""
    )
    studio.press("best")
    studio.until("() => document.querySelector('#gj-studio .gj-message span')?.textContent === 'The best 4 of 40.'")
    studio.still()
    progress = studio.page.evaluate("window.progress.filter((value) => value > 0)")
    assert progress == sorted(progress)
    assert len(set(progress)) > 1
    assert not [word for word in studio.page.evaluate("[...window.words]") if word.startswith("Done")]
    steps = studio.page.evaluate("window.gibbsJem.history.frames.map((frame) => frame.step)")
    assert steps == sorted(set(steps)), "a line of the plot never goes backward"


def test_models_stand_as_pictures(visit, tiny_bundle):
    studio = visit(model="tiny", pause=2)
    studio.wait_state("paused")
    cards = studio.page.locator(".gj-shelf button")
    labels = [text.strip() for text in cards.all_inner_texts()]
    assert labels[1:3] == ["Avatars", "Faces"]  # the first is of no known data
    assert cards.first.get_attribute("aria-pressed") == "true"
    cards.nth(1).click()
    studio.until("() => window.gibbsJem.store.settings.model.startsWith('avatars')")
    assert studio.setting("with") == ["Smiling", "Eyeglasses"]
    assert cards.nth(1).get_attribute("aria-pressed") == "true"
    assert studio.text(".gj-hero h1") == "Ask for a face. Watch it appear."
    studio.settle()  # it was paused before, and the badge is of the new model
    assert f"of {tiny_bundle.support.total} training images" not in studio.text(".gj-badge")


def test_a_spent_run_rests_and_goes_on(models: list[Path], come, tmp_path):
    server = start_server(tmp_path / "log.txt", models, GIBBS_JEM_RUN_STEPS="3")
    try:
        studio = come(server.url).open(model="tiny", chains=4)
        studio.wait_state("resting")
        studio.still()
        assert studio.step == 3
        button = studio.page.locator(".gj-main [data-do=main]")
        assert button.inner_text() == "Resume"
        assert studio.text(".gj-message span") == "Paused, so that others get a turn."
        button.click()
        studio.settle()
        studio.leave()
    finally:
        stop_server(server)


def test_light_and_dark_by_hand(visit):
    studio = visit()
    paper = "() => getComputedStyle(document.querySelector('.gradio-container')).getPropertyValue('--gj-paper').trim()"
    before = studio.page.evaluate(paper)
    assert studio.page.locator(".gj-theme").inner_text() == "Dark mode"
    studio.page.locator(".gj-theme").click()
    assert studio.page.evaluate(paper) != before
    assert studio.page.locator(".gj-theme").inner_text() == "Light mode"
