"""The divergence guard: trips on what is wrong, not on one odd batch, and gives up after its count."""

import math

import pytest

from jem_core.config import make_config
from jem_core.divergence import Guard

FINE = {"energy_gap": 1.0, "grad_norm": 5.0, "stuck": 0.0, "buffer_contrast": 1.0, "loss": 3.0}


def guard(**changes: object) -> Guard:
    return Guard(make_config({"guard_window": 4, "guard_trips": 2} | changes))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_trips_at_once(value: float) -> None:
    assert guard().check(FINE | {"loss": value}) == f"loss is {value}"


@pytest.mark.parametrize(
    ("name", "bad", "limit"),
    [("energy_gap", -100.0, 30), ("grad_norm", 1e5, 500), ("stuck", 0.9, 0.5), ("behind", 0.9, 0.8)],
)
def test_a_mean_over_the_window_trips(name: str, bad: float, limit: float) -> None:
    watch = guard()
    for _ in range(3):
        assert watch.check(FINE | {name: bad}) is None  # the window is not full
    message = watch.check(FINE | {name: bad})
    assert message == f"{name} averages {abs(bad):.3g} over 4 iterations, above {limit:g}"


def test_one_odd_batch_does_not_trip() -> None:
    watch = guard()
    for i in range(50):
        assert watch.check(FINE | {"energy_gap": 100.0 if i % 4 == 0 else 0.0}) is None  # a mean of 25


@pytest.mark.parametrize("contrast", [0.4, 2.5])
def test_the_buffers_spread_must_stay_near_the_datas(contrast: float) -> None:
    assert f"{contrast:.2f} times the data's" in guard().check(FINE | {"buffer_contrast": contrast})


def test_a_supervised_run_has_fewer_figures() -> None:
    assert guard().check({"loss": 1.0, "grad_norm": 2.0}) is None


def test_trips_halve_the_rate_and_end() -> None:
    watch = guard()
    assert watch.rate_factor == 1
    for _ in range(3):
        watch.check(FINE | {"grad_norm": 1e5})
    assert watch.trip()
    assert watch.rate_factor == 0.5
    assert watch.check(FINE | {"grad_norm": 1e5}) is None  # the window began anew
    assert watch.trip()
    assert watch.rate_factor == 0.25
    assert not watch.trip()


def test_a_resumed_guard_goes_on_as_it_was() -> None:
    one, two = guard(), guard()
    for _ in range(3):
        one.check(FINE | {"stuck": 0.9})
    two.restore(1, 0, {name: list(values) for name, values in one.window.items()})
    assert two.trips == 1
    assert two.check(FINE | {"stuck": 0.9}) == one.check(FINE | {"stuck": 0.9}) is not None


def test_a_long_calm_forgives_one_trip_and_gives_its_rate_back() -> None:
    watch = guard(guard_calm=3)
    watch.trip()
    watch.trip()
    assert watch.rate_factor == 0.25
    for _ in range(3):
        assert watch.check(FINE) is None
    assert watch.rate_factor == 0.5
    watch.check(FINE)
    watch.trip()
    watch.check(FINE)
    assert (watch.trips, watch.calm) == (2, 1)
