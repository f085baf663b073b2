"""Runs without a browser: what the chains do under letters, and that they are jem_core's own chains."""

import threading
from dataclasses import replace

import pytest
import torch

from app.catalog import Catalog
from app.chains import begin
from app.live import stream
from app.mailbox import Letter, Mailbox
from app.runtime import Runtime, current, install
from app.settings import Settings
from jem_core.condition import Condition
from jem_core.sampling import sample

SETTINGS = Settings(model="tiny", chains=4, speed=0, wanted=("Red",), steps=6, rest=0)


def letter_of(settings: Settings, **changes) -> Letter:
    return replace(Letter(order=1, run="r", playing=True, fresh=1, settings=settings.values()), **changes)


def run(settings: Settings, chains=None, action="run", session="test", photo=None, **changes):
    """The frames of a run and the chains that it leaves."""
    box = Mailbox(session)
    box.drop()
    box.post(letter_of(settings, **changes))
    frames, kept = [], chains
    for frame, left in stream(box, "r", chains, photo, action):
        frames.append(frame)
        kept = left or kept
    return frames, kept


def test_a_run_is_the_same_as_jem_core_sample(runtime):
    """Same seed, same steps, same settings: the app's chains and the library's are one, bit for bit."""
    settings = SETTINGS.but(guidance=2.0, noise_std=0.01, augment_every=2, variety=0.6)
    frames, chains = run(settings)
    bundle = runtime.catalog.bundle("tiny")
    condition = Condition.from_lists(bundle.names, ["Red"])
    changes = {"guidance": 2.0, "noise_std": 0.01, "augment_every": 2, "variety": 0.6}
    expected = sample(bundle, condition, 4, steps=6, **changes)
    assert not torch.equal(expected.images, sample(bundle, condition, 4, steps=6, **changes | {"variety": 1.0}).images)
    assert torch.equal(chains.lanes[0].state.x, expected.images)
    assert frames[-1]["status"] == "paused"
    assert frames[-1]["step"] == 6


def test_pausing_and_going_on_changes_nothing(runtime):
    whole = run(SETTINGS.but(augment_every=4))[1]
    half = run(SETTINGS.but(augment_every=4, steps=3))[1]
    both = run(SETTINGS.but(augment_every=4), chains=half)[1]
    assert both.step == 6
    assert both.digest() == whole.digest()


def test_chains_rest_and_walk_on(runtime):
    frames, rested = run(SETTINGS.but(steps=0, rest=5))
    assert (frames[-1]["status"], frames[-1]["step"]) == ("resting", 5)
    assert "Continue" in frames[-1]["message"]
    frames, went_on = run(SETTINGS.but(steps=0, rest=5), chains=rested)
    assert (frames[-1]["status"], frames[-1]["step"]) == ("resting", 10)
    assert went_on.digest() == run(SETTINGS.but(steps=10, rest=5))[1].digest(), "a rest changes no chain"


def test_the_model_says_when_to_rest(runtime):
    frames, _ = run(SETTINGS.but(steps=0, rest=None))
    assert (frames[-1]["status"], frames[-1]["step"]) == ("resting", 5)  # the small model's own number of steps


def test_a_new_wish_puts_the_rest_off(runtime):
    box, settings = Mailbox("rest"), SETTINGS.but(steps=0, rest=5)
    box.drop()
    box.post(letter_of(settings))
    frames = []
    for frame, _ in stream(box, "r", None, None, "run"):
        frames.append(frame)
        if len(frames) == 1:  # while the chains stand at step 0 nothing is put off, so wait for a step
            continue
        if frame["order"] == 1 and frame["status"] == "running":
            box.post(letter_of(settings.but(wanted=("Framed",)), order=2))
            asked_at = frame["step"]
    assert (frames[-1]["status"], frames[-1]["step"]) == ("resting", asked_at + 5)


def test_single_steps_add_up_to_a_run(runtime):
    chains = run(SETTINGS, action="look")[1]
    assert chains.step == 0
    for _ in range(6):
        chains = run(SETTINGS, chains=chains, action="step")[1]
    assert chains.digest() == run(SETTINGS)[1].digest()


def test_another_wish_before_the_first_step_begins_other_chains(runtime):
    """Conditional noise knows the wish: chains that have not moved must not keep the noise of an older one."""
    blue = SETTINGS.but(wanted=(), unwanted=("Red",))
    standing = run(SETTINGS, action="look")[1]
    assert run(blue, chains=standing)[1].digest() == run(blue)[1].digest()
    moved = run(SETTINGS, chains=standing, action="step")[1]
    assert run(blue.but(steps=0), chains=moved, action="look")[1].digest() == moved.digest()


def test_half_steps(runtime):
    chains = run(SETTINGS, action="look")[1]
    before = chains.digest()
    assert run(SETTINGS, chains=chains, action="labels")[1].digest() == before
    moved = run(SETTINGS, chains=chains, action="langevin")[1]
    assert moved.step == 1
    assert moved.digest() != before


def test_a_letter_in_the_middle_steers_the_same_chains(runtime):
    box = Mailbox("steered")
    box.drop()
    box.post(letter_of(SETTINGS.but(steps=0)))
    seen, chains = [], None
    for frame, kept in stream(box, "r", None, None, "run"):
        chains = kept or chains
        seen.append((frame["order"], frame["step"], frame["with"]))
        if len(seen) == 3:
            box.post(letter_of(SETTINGS.but(steps=0, wanted=("Left",), unwanted=("Red",)), order=2))
        if len(seen) == 6:
            box.post(letter_of(SETTINGS.but(steps=0, wanted=("Left",)), order=3, playing=False))
    steps = [step for _, step, _ in seen]
    assert steps == sorted(steps)
    assert seen[-1][2] == ["Left"]
    assert chains.steered
    assert set(chains.lanes[0].state.condition[:, 3].tolist()) == {1}


def test_a_reset_in_the_middle_begins_new_chains(runtime):
    box = Mailbox("reset")
    box.drop()
    box.post(letter_of(SETTINGS.but(steps=0)))
    steps = []
    for frame, _ in stream(box, "r", None, None, "run"):
        steps.append(frame["step"])
        if len(steps) == 4:
            box.post(letter_of(SETTINGS.but(steps=0), order=2, fresh=2))
        if len(steps) == 8:
            box.post(letter_of(SETTINGS.but(steps=0), order=3, fresh=2, playing=False))
    assert steps != sorted(steps)


def test_an_older_run_ends_when_a_newer_one_begins(runtime):
    box = Mailbox("older")
    box.drop()
    box.post(letter_of(SETTINGS.but(steps=0)))
    old = stream(box, "r", None, None, "run")
    next(old)
    box.post(letter_of(SETTINGS, order=2, run="newer"))
    assert [frame["status"] for frame, _ in old] in ([], ["running"])


def test_a_lost_mailbox_leaves_the_last_wish(runtime):
    box = Mailbox("lost")
    box.drop()
    box.post(letter_of(SETTINGS))
    frames = []
    for frame, _ in stream(box, "r", None, None, "run"):
        frames.append(frame)
        box.drop()
    assert frames[-1]["step"] == 6
    assert frames[-1]["with"] == ["Red"]


def test_a_run_rests_when_its_budget_is_spent(runtime):
    install(Runtime(runtime.catalog, replace(runtime.limits, run_steps=5)))
    frames, chains = run(SETTINGS.but(steps=0))
    assert frames[-1]["status"] == "resting"
    assert chains.step == 5
    assert run(SETTINGS.but(steps=0), chains=chains)[1].step == 10


def test_keep_the_best_is_never_worse(runtime):
    frames, best = run(SETTINGS, action="best")
    n, parts = SETTINGS.chains, current().limits.best_of
    assert frames[-1]["message"] == f"The best {n} of {n * parts} chains after 6 steps each."
    everyone = [run_part(runtime.catalog, slice(i * n, (i + 1) * n), parts).log_p_condition for i in range(parts)]
    top = torch.cat(everyone).sort(descending=True).values[:n]
    assert torch.allclose(best.lanes[0].info.log_p_condition, top, atol=1e-4)
    assert [frame for frame in frames if frame["status"] == "best"] == frames[:-1]


def run_part(catalog: Catalog, part: slice, parts: int):
    """The figures of some of the chains, by jem_core alone."""
    from jem_core.samplers import Sampler
    from jem_core.sampling import finish, run_chains

    bundle = catalog.bundle("tiny")
    lane = begin(catalog, SETTINGS, part=part, parts=parts).lanes[0]
    kernel = Sampler("marginalizing", bundle.model, bundle.langevin()[0])
    state = lane.state
    for stepped, _ in run_chains(kernel, state, lane.randomness, 6):
        state = stepped
    return finish(kernel, state, lane.randomness)


def test_keep_the_best_can_be_stopped_and_loses_nothing(runtime):
    chains = run(SETTINGS)[1]
    before = chains.digest()
    frames, after = run(SETTINGS, chains=chains, action="best", playing=False)
    assert frames[-1]["message"] == "Stopped; the chains are as they were."
    assert after.digest() == before


def test_two_lanes_start_from_the_same_noise(runtime):
    for compare in ("samplers", "models"):
        chains = run(SETTINGS.but(compare=compare), action="look")[1]
        first, second = chains.lanes
        assert torch.equal(first.state.x, second.state.x)
        assert (first.sampler, first.model) != (second.sampler, second.model)


def test_a_photo_is_where_chains_start(runtime):
    photo = torch.full((1, 3, 48, 48), 0.25)
    chains = run(SETTINGS.but(start="photo"), action="look", photo=photo)[1]
    assert torch.allclose(chains.lanes[0].state.x, torch.tensor(0.25), atol=1e-3)
    frames, _ = run(SETTINGS.but(start="photo"), action="look")
    assert frames[-1]["status"] == "error"
    assert "your photo" in frames[-1]["message"]


def test_a_crash_becomes_a_sentence(runtime, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("secret details")

    monkeypatch.setattr("app.chains.move", broken)
    frames, _ = run(SETTINGS)
    assert frames[-1]["status"] == "error"
    assert "secret" not in frames[-1]["message"]
    assert "secret details" in caplog.text


def test_visitors_at_the_same_time_get_their_own_chains(runtime):
    alone = {seed: run(SETTINGS.but(seed=seed))[1].digest() for seed in (1, 2, 3)}
    together: dict[int, str] = {}

    def visitor(seed: int) -> None:
        together[seed] = run(SETTINGS.but(seed=seed), session=f"visitor {seed}")[1].digest()

    threads = [threading.Thread(target=visitor, args=(seed,)) for seed in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


@pytest.mark.parametrize("action", ["run", "look", "step", "labels", "langevin", "best"])
def test_every_action_ends_in_an_exact_picture(runtime, action):
    frames, _ = run(SETTINGS, action=action)
    last = frames[-1]
    assert last["status"] == "paused"
    assert last["lanes"][0]["src"].startswith("data:image/png;base64,")
    assert len(last["digest"]) == 16
