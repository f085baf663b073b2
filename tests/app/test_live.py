"""Runs without a browser: what the chains do under letters, and that they are jem_core's own chains."""

import threading
from dataclasses import replace

import pytest
import torch
from runs import LEVELS, PAPER, letter_of, pictures, run

from app.live import Order, stream
from app.mailbox import Mailbox
from app.runtime import Runtime, current, install
from jem_core.chains import sample
from jem_core.condition import Condition

BOTH = pytest.mark.parametrize("settings", [PAPER, LEVELS], ids=["paper", "levels"])


@BOTH
def test_a_run_is_the_same_as_jem_core_sample(runtime, settings):
    """Same seed, same settings: the app's chains and the library's are one, bit for bit."""
    frames, chains = run(settings.but(own=(("guidance", 2.5), ("variety", 0.6))))
    bundle = runtime.catalog.bundle(settings.model)
    condition = Condition.from_lists(bundle.names, ["Red"])
    expected = sample(bundle, condition, 4, guidance=2.5, variety=0.6)
    assert not torch.equal(expected.images, sample(bundle, condition, 4, guidance=2.5).images)
    assert torch.equal(pictures(chains, runtime), expected.images)
    assert frames[-1]["status"] == "settled"
    assert frames[-1]["step"] == bundle.sampling["steps"]


@BOTH
def test_a_change_goes_as_jem_core_walks(runtime, settings):
    from jem_core.walks import parse_walk, run_walk

    _, chains = run(settings)
    frames, chains = run(settings.but(required=("Red", "Left"), excluded=("Dotted",)), chains, order=None)
    bundle = runtime.catalog.bundle(settings.model)
    walk = run_walk(bundle, parse_walk("Red; -Dotted+Left", bundle), 4)
    assert torch.equal(pictures(chains, runtime), walk.images[-1])
    assert frames[-1]["walk"] == "Red;-Dotted+Left"
    assert frames[0]["with"] == ["Red", "Left"]


def test_a_change_lifts_chains_that_know_noise_levels(runtime):
    _, chains = run(LEVELS)
    assert chains.level == 0
    frames, _ = run(LEVELS.but(required=("Left",)), chains)
    assert frames[0]["level"] == pytest.approx(runtime.catalog.bundle("tiny-levels").sampling["lift"])
    assert frames[-1]["level"] == 0
    less = run(LEVELS.but(required=("Left",), own=(("lift", 0.5),)), run(LEVELS)[1])[0]
    assert less[0]["level"] == pytest.approx(0.5)


@BOTH
def test_pausing_and_going_on_changes_nothing(runtime, settings):
    whole = run(settings)[1]
    frames, half = run(settings.but(pause=3))
    assert (frames[-1]["status"], frames[-1]["step"]) == ("paused", 3)
    both = run(settings, chains=half)[1]
    assert both.digest() == whole.digest()


@BOTH
def test_single_steps_add_up_to_a_run(runtime, settings):
    frames, chains = run(settings, order=Order("show"))
    assert chains.step == 0
    while frames[-1]["status"] != "settled":
        frames, chains = run(settings, chains=chains, order=Order("step"))
    assert chains.digest() == run(settings)[1].digest()


def test_another_condition_before_the_first_step_begins_other_chains(runtime):
    """The start knows the condition: chains that have not moved must not keep the noise of an older one."""
    blue = PAPER.but(required=(), excluded=("Red",))
    standing = run(PAPER, order=Order("show"))[1]
    assert run(blue, chains=standing)[1].digest() == run(blue)[1].digest()


def test_half_steps(runtime):
    chains = run(PAPER, order=Order("show"))[1]
    before = chains.digest()
    assert run(PAPER, chains=chains, order=Order("labels"))[1].digest() == before
    frames, moved = run(PAPER, chains=chains, order=Order("langevin"))
    assert moved.step == 1
    assert moved.digest() != before
    assert frames[-1]["why"] == "a step was taken in halves"


def test_a_letter_in_the_middle_steers_the_same_chains(runtime):
    box = Mailbox("steered")
    box.drop()
    box.post(letter_of(LEVELS.but(moving=1)))
    seen, chains = [], None
    for frame, kept in stream(box, "r", None, None, Order()):
        chains = kept or chains
        seen.append((frame["step"], frame["with"]))
        if len(seen) == 3:
            box.post(letter_of(LEVELS.but(moving=1, required=("Left",), excluded=("Red",)), order=2))
        if len(seen) == 6:
            box.post(letter_of(LEVELS.but(required=("Left",)), order=3, playing=False))
    steps = [step for step, _ in seen]
    assert steps == sorted(steps)
    assert seen[-1][1] == ["Left"]
    assert set(chains.lanes[0].memory.state.condition[:, 3].tolist()) == {1}


def test_a_reset_in_the_middle_begins_new_chains(runtime):
    box = Mailbox("reset")
    box.drop()
    box.post(letter_of(LEVELS.but(moving=1)))
    steps, epochs = [], []
    for frame, _ in stream(box, "r", None, None, Order()):
        steps.append(frame["step"])
        epochs.append(frame["epoch"])
        if len(steps) == 4:
            box.post(letter_of(LEVELS.but(moving=1), order=2, fresh=2))
        if len(steps) == 8:
            box.post(letter_of(LEVELS, order=3, fresh=2, playing=False))
    assert steps != sorted(steps)
    assert len(set(epochs)) == 2


def test_moving_chains_never_arrive_and_rest_when_told(runtime):
    install(Runtime(runtime.catalog, replace(runtime.limits, run_steps=60)))
    frames, chains = run(LEVELS.but(moving=1))
    assert (frames[-1]["status"], frames[-1]["step"]) == ("resting", 60)
    assert max(frame["level"] for frame in frames[3:]) > 0
    assert chains.lanes[0].memory.state.x.isfinite().all()
    frames, chains = run(LEVELS, chains=chains)
    assert (frames[-1]["status"], frames[-1]["level"]) == ("settled", 0)
    assert frames[-1]["why"] == "the pictures kept moving"


def test_more_like_this_keeps_the_picture_in_its_place(runtime):
    before = run(LEVELS)[1]
    kept = pictures(before, runtime).clone()
    frames, after = run(LEVELS.but(seed=9), before, order=Order("like", place=2), fresh=2)
    now = pictures(after, runtime)
    assert torch.equal(now[2], kept[2])
    assert not torch.equal(now[1], kept[2])
    assert frames[-1]["status"] == "settled"
    assert frames[-1]["why"].startswith("they grew out of")
    other = run(LEVELS.but(seed=9, required=("Left",)), after, fresh=2)[1]
    assert not torch.equal(pictures(other, runtime)[2], kept[2]), "it is not locked afterwards"
    assert run(PAPER.but(seed=9), run(PAPER)[1], order=Order("like"), fresh=2)[0][-1]["status"] == "error"


@BOTH
def test_a_visitor_can_go_back(runtime, settings):
    frames, chains = run(settings)
    first, digest = frames[-1]["state"], frames[-1]["digest"]
    other = settings.but(required=("Left",))
    frames, chains = run(other, chains)
    assert frames[-1]["states"] == [first, first + 1]
    frames, chains = run(settings, chains, order=Order("back", state=first), fresh=2)
    assert (frames[-1]["status"], frames[-1]["digest"]) == ("settled", digest)
    assert frames[-1]["state"] == first
    again = run(other, chains, fresh=2)[1]  # and from there on it goes as it went before
    assert again.digest() == run(other, run(settings)[1])[1].digest()
    assert run(settings, chains, order=Order("back", state=999), fresh=3)[0][-1]["message"].endswith("no longer kept.")


@BOTH
def test_a_link_takes_the_same_changes_again(runtime, settings):
    """Also such that came before the pictures had arrived."""
    chains = run(settings.but(pause=2))[1]
    second = settings.but(required=("Left",))
    chains = run(second, chains)[1]
    third = second.but(excluded=("Red",), pause=chains.step + 3)
    frames, chains = run(third, chains)
    assert frames[-1]["walk"] == "Red@2;~Red+Left;-Red@3"
    opened = third.but(pause=0, walk=frames[-1]["walk"])
    again, copy = run(opened)
    assert copy.digest() == chains.digest()
    assert again[-1]["status"] == "paused"
    assert again[-1]["walk"] == frames[-1]["walk"]
    on = run(opened.but(walk="", required=("Framed",)), copy)[0]
    assert (on[-1]["status"], on[-1]["with"]) == ("settled", ["Framed"]), "a change there works at once"


def test_a_link_tells_how_much_was_allowed_to_change(runtime):
    """Where it was said before the first change; later, the changes before would be taken in another way."""
    some, red = LEVELS.but(own=(("lift", 0.5),)), LEVELS.but(required=("Red", "Left"))
    frames, chains = run(some.but(required=("Red", "Left")), run(LEVELS)[1])
    assert (frames[-1]["walk"], frames[-1]["why"]) == ("Red;Left", "")
    again = run(some.but(required=("Red", "Left"), walk="Red;Left"))[1]
    assert torch.equal(pictures(again, runtime), pictures(chains, runtime))
    late, _ = run(some.but(required=("Left",)), run(red, run(LEVELS)[1])[1])
    assert late[-1]["why"] == "settings changed on the way"


def test_a_change_while_a_link_is_taken_again_does_not_wait(runtime):
    box = Mailbox("hasty")
    box.drop()
    box.post(letter_of(LEVELS.but(required=("Left",), walk="Red;~Red+Left")))
    frames = []
    for frame, _ in stream(box, "r", None, None, Order()):
        frames.append(frame)
        if len(frames) == 2:
            box.post(letter_of(LEVELS.but(required=("Framed",)), order=2))
    assert frame["with"] == ["Framed"]
    assert frame["left"] == 0


@pytest.mark.parametrize(
    ("walk", "word"), [("Red;Nobody", "Nobody"), ("Red;Left", "contradicts itself"), ("Red@x", "@x")]
)
def test_a_link_that_makes_no_sense_is_refused(runtime, walk, word):
    frames, _ = run(LEVELS.but(walk=walk))
    assert frames[-1]["status"] == "error"
    assert word in frames[-1]["message"]


def test_a_chain_that_goes_astray_is_replaced(runtime):
    chains = run(LEVELS.but(pause=3))[1]
    memory = chains.lanes[0].memory
    x = memory.state.x.clone()
    x[1] = float("nan")
    memory.state = memory.state._replace(x=x)
    frames, after = run(LEVELS, chains)
    shown = pictures(after, runtime)
    assert shown.isfinite().all()
    assert shown[1].std() > 0.01
    assert frames[-1]["why"] == "a chain went astray and was replaced"


def test_what_is_seen(runtime):
    """The chain itself has its noise; where it is heading has not."""
    half = run(LEVELS.but(pause=2))[1]
    sources = [
        run(LEVELS.but(view=view), half, order=Order("show"))[0][-1]["lanes"][0]["src"] for view in ("heading", "chain")
    ]
    assert sources[0] != sources[1]
    assert len(sources[1]) > len(sources[0])  # noise takes more room


def test_an_older_run_ends_when_a_newer_one_begins(runtime):
    box = Mailbox("older")
    box.drop()
    box.post(letter_of(LEVELS.but(moving=1)))
    old = stream(box, "r", None, None, Order())
    next(old)
    box.post(letter_of(LEVELS, order=2, run="newer"))
    assert [frame["status"] for frame, _ in old] in ([], ["running"])


def test_a_lost_mailbox_leaves_the_last_letter(runtime):
    box = Mailbox("lost")
    box.drop()
    box.post(letter_of(PAPER))
    frames = []
    for frame, _ in stream(box, "r", None, None, Order()):
        frames.append(frame)
        box.drop()
    assert (frames[-1]["status"], frames[-1]["with"]) == ("settled", ["Red"])


def test_keep_the_best_is_never_worse(runtime):
    frames, best = run(LEVELS, order=Order("best"))
    n, parts = LEVELS.chains, current().limits.best_of
    assert frames[-1]["message"] == f"The best {n} of {n * parts}."
    bundle = runtime.catalog.bundle("tiny-levels")
    expected = sample(bundle, Condition.from_lists(bundle.names, ["Red"]), n, keep_best=parts)
    assert torch.allclose(best.lanes[0].memory.info.log_p_condition, expected.log_p_condition, atol=1e-4)
    assert {frame["status"] for frame in frames[:-1]} <= {"best"}
    assert frames[-1]["best_of"] == parts


def test_keep_the_best_can_be_stopped_and_loses_nothing(runtime):
    chains = run(PAPER)[1]
    before = chains.digest()
    frames, after = run(PAPER, chains=chains, order=Order("best"), playing=False)
    assert frames[-1]["message"] == "Stopped. The pictures are as they were."
    assert frames[-1]["status"] == "settled", "they had arrived before"
    assert after.digest() == before


def test_two_lanes_start_from_the_same_noise(runtime):
    for compare in ("samplers", "models"):
        chains = run(PAPER.but(compare=compare, beside="tiny-jem"), order=Order("show"))[1]
        first, second = chains.lanes
        assert torch.equal(first.memory.state.x, second.memory.state.x)
        assert (first.sampler, first.model) != (second.sampler, second.model)


def test_a_photo_is_where_chains_start(runtime):
    photo = torch.full((1, 3, 48, 48), 0.25)
    settings = PAPER.but(own=(("start", "photo"),))
    frames, chains = run(settings, order=Order("show"), photo=photo)
    assert torch.allclose(chains.lanes[0].memory.state.x, torch.tensor(0.25), atol=1e-3)
    assert frames[-1]["why"] == "they started from your photo"
    frames, _ = run(settings, order=Order("show"))
    assert frames[-1]["status"] == "error"
    assert "your photo" in frames[-1]["message"]


def test_a_crash_becomes_a_sentence(runtime, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("secret details")

    monkeypatch.setattr("app.chains.Stepper.advance", broken)
    frames, _ = run(PAPER)
    assert frames[-1]["status"] == "error"
    assert "secret" not in frames[-1]["message"]
    assert "secret details" in caplog.text


def test_visitors_at_the_same_time_get_their_own_chains(runtime):
    alone = {seed: run(LEVELS.but(seed=seed))[1].digest() for seed in (1, 2, 3)}
    together: dict[int, str] = {}

    def visitor(seed: int) -> None:
        together[seed] = run(LEVELS.but(seed=seed), session=f"visitor {seed}")[1].digest()

    threads = [threading.Thread(target=visitor, args=(seed,)) for seed in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


@pytest.mark.parametrize("action", ["run", "show", "step", "labels", "langevin", "best"])
@BOTH
def test_every_action_ends_in_an_exact_picture(runtime, settings, action):
    frames, _ = run(settings, order=Order(action))
    last = frames[-1]
    assert last["status"] in ("paused", "settled")
    assert last["lanes"][0]["src"].startswith("data:image/png;base64,")
    assert len(last["digest"]) == 16
