"""The run: first paint, steering, pause, step, half-steps, reset, and visitors who do not meet."""

import time

import pytest

DRIFT = {"noise_std": 0.05, "speed": 30}  # chains that visibly walk away from where they began


def test_a_visitor_who_touches_nothing_sees_chains_move(visit):
    studio = visit()
    studio.wait_step(5)
    assert studio.state == "running"
    assert "Markov chain" in studio.text(".gj-hero")
    assert studio.text(".gj-asked").startswith("You ask for red")
    assert "of 2" in studio.text(".gj-badge span")


def test_a_chip_goes_through_its_three_states_and_back(visit):
    studio = visit(**{"with": ["Red"]})
    chip = studio.chip("Bright")
    states = []
    for _ in range(3):
        chip.click()
        states.append((chip.get_attribute("data-state"), chip.get_attribute("aria-label")))
    assert states == [("with", "Bright: with"), ("without", "Bright: without"), ("free", "Bright: free")]


def test_chips_answer_to_the_keyboard(visit):
    studio = visit(**{"with": ["Red"]})
    chip = studio.chip("Bright")
    chip.focus()
    studio.page.keyboard.press("Space")
    assert chip.get_attribute("aria-pressed") == "true"
    studio.page.keyboard.press("-")
    assert chip.get_attribute("aria-pressed") == "mixed"
    studio.page.keyboard.press("0")
    assert chip.get_attribute("aria-pressed") == "false"
    studio.page.keyboard.press("ArrowRight")
    assert studio.page.evaluate("document.activeElement.dataset.name") == "Striped"


def test_toggling_steers_the_same_chains(visit):
    """No jump back to noise: the picture changes by one step's noise, not by the way that the chains have come."""
    studio = visit(**DRIFT, **{"with": ["Red"]})
    studio.page.evaluate(
        """() => { const big = document.querySelector('.gj-canvas'); const small = document.createElement('canvas');
        small.width = small.height = 64; const context = small.getContext('2d', { willReadFrequently: true });
        context.globalCompositeOperation = 'copy';
        window.seen = []; let last = -1;
        const look = () => { const c = window.gibbsJem.counters;
          if (c.frames !== last) { last = c.frames; context.drawImage(big, 0, 0, 64, 64);
            const data = [...context.getImageData(0, 0, 64, 64).data];
            window.seen.push({ step: c.shownStep, order: c.shownOrder, data }); }
          requestAnimationFrame(look); };
        look(); }"""
    )
    studio.wait_step(60)
    order = studio.store("order")
    studio.chip("Framed").click()
    studio.until("(order) => window.gibbsJem.counters.shownOrder > order", order)
    studio.wait_step(int(studio.page.evaluate("window.gibbsJem.counters.shownStep")) + 5)
    jumps = studio.page.evaluate(
        """(order) => { const mean = (a, b) =>
          a.data.reduce((s, v, i) => s + Math.abs(v - b.data[i]), 0) / a.data.length;
        const at = window.seen.findIndex((f) => f.order > order);
        const span = window.seen[at].step - window.seen[at - 1].step;
        return { turn: mean(window.seen[at - 1], window.seen[at]), back: mean(window.seen[0], window.seen[at]),
                 steps: window.seen.map((f) => f.step), span }; }""",
        order,
    )
    assert jumps["steps"] == sorted(jumps["steps"])  # never back to step 0
    assert jumps["turn"] < jumps["back"] / 2
    assert studio.setting("with") == ["Red", "Framed"]


def test_ten_toggles_in_two_seconds_end_in_the_last_state(visit):
    studio = visit(**{"with": ["Red"]})
    for _ in range(10):
        studio.chip("Dotted").click()
        studio.page.wait_for_timeout(120)
    assert studio.chip("Dotted").get_attribute("data-state") == "with"  # 10 clicks = 3 times round and one more
    order = studio.store("order")
    studio.until("(order) => window.gibbsJem.counters.shownOrder >= order", order)
    studio.pause()
    assert sorted(studio.page.evaluate("window.gibbsJem.shown().with")) == ["Dotted", "Red"]


def test_pause_stops_computing_and_run_goes_on_from_the_same_images(visit, server):
    studio = visit(speed=0)
    studio.wait_step(20)
    studio.pause()
    stood, digest, picture = studio.step, studio.digest, studio.pixels()
    before = server.cpu_seconds()
    time.sleep(1.5)
    assert server.cpu_seconds() - before < 0.3
    assert (studio.step, studio.pixels()) == (stood, picture)
    studio.act("step")
    assert studio.step == stood + 1
    assert studio.digest != digest
    studio.press("toggle")
    studio.wait_step(stood + 3)
    assert studio.state == "running"


def test_the_half_steps_do_their_half(visit):
    studio = visit(steps=4, **{"with": ["Red"]})
    studio.wait_state("paused")
    studio.still()
    stood, digest = studio.step, studio.digest
    studio.act("labels")
    assert (studio.step, studio.digest) == (stood, digest)  # labels alone: the image stays
    studio.act("langevin")
    assert studio.step == stood + 1
    assert studio.digest != digest


def test_reset_begins_again_from_the_same_noise(visit):
    studio = visit(steps=3)
    studio.wait_state("paused")
    studio.still()
    after_three = studio.digest
    studio.act("reset")
    assert studio.step == 0
    assert studio.digest != after_three
    for _ in range(3):
        studio.act("step")
    assert studio.digest == after_three


def test_reset_while_running_goes_on_running(visit):
    studio = visit(speed=30)
    studio.wait_step(30)
    studio.press("reset")
    studio.until("() => window.gibbsJem.counters.shownStep < 15")
    studio.wait_step(16)
    assert studio.state == "running"


def test_closing_the_tab_ends_the_work(visit, server):
    studio = visit(speed=0, chains=64)
    studio.wait_step(10)
    studio.page.close()
    for _ in range(5):  # one second on an idle machine; a busy one hears of the closed tab later
        time.sleep(1.0)
        before = server.cpu_seconds()
        time.sleep(1.0)
        if server.cpu_seconds() - before < 0.25:
            return
    pytest.fail("the server still computes ten seconds after the tab was closed")


def test_two_visitors_never_see_each_others_chains(visit):
    alone = visit(seed=7, steps=12)
    alone.wait_state("paused")
    alone.still()
    expected = alone.digest
    first, second = visit(seed=7, steps=12), visit(seed=8, steps=12, **{"with": ["Framed"]})
    for studio in (first, second):
        studio.wait_state("paused")
        studio.still()
    assert first.digest == expected
    assert second.digest != expected
    second.chip("Bright").click()
    second.act("step")
    assert first.digest == expected
    assert first.setting("with") == ["Red"]


def test_slow_motion_and_flat_out(visit):
    studio = visit(speed=2)
    studio.page.wait_for_timeout(2500)
    assert studio.step < 12
    slider = studio.page.locator(".gj-speed input")
    slider.fill("7")
    assert studio.text(".gj-speed output") == "flat out"
    studio.wait_step(studio.step + 30)
