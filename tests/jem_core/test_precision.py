"""Half the digits in the convolutions, where the hardware has them: the same step but for a percent."""

import pytest
import torch

from jem_core.bundle import Bundle
from jem_core.chains import sample
from jem_core.condition import Condition
from jem_core.precision import compute_in, fastest_precision
from jem_core.random import generator
from jem_core.samplers import SAMPLERS, KernelSettings, make_sampler
from jem_core.schedules import Step

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"avx2": True, "avx512_bf16": False, "amx_bf16": False}, "float32"),
        ({"avx512_bf16": True}, "bfloat16"),
        ({"amx_bf16": True}, "bfloat16"),
        ({}, "float32"),
    ],
)
def test_bfloat16_is_chosen_where_the_processor_has_it(
    monkeypatch: pytest.MonkeyPatch, capabilities: dict, expected: str
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert fastest_precision(CPU) == expected


def test_another_kind_of_device_computes_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    assert fastest_precision(torch.device("mps")) == "float32"


@pytest.fixture(params=["tiny_bundle", "tiny_levels"])
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_step_moves_the_same_way_in_both(bundle: Bundle, name: str) -> None:
    """Images and energies stay in single precision; the move agrees to a few percent, and is not the same bits."""
    model, level = bundle.model, 0.5 if bundle.levels else 0.0
    x = model.encode(torch.rand(4, 3, 32, 32, generator=generator(0)))
    condition = Condition.from_lists(bundle.names, ("Red",)).tensor(4)
    step = Step(level, 1.0, 0.0, level)
    moved, energies = {}, {}
    for precision in ("float32", "bfloat16"):
        # Strong guidance: without it the slope of an untrained network over levels is a Gaussian's, the same in both.
        settings = KernelSettings(guidance=50.0, clamp=False, precision=precision)
        sampler = make_sampler(name, model, settings)
        state = sampler.init(x, condition, generator(1), y=condition.clamp(min=0), level=level)
        after, info = sampler.langevin(state, step, generator(2))
        assert after.x.dtype == info.energy.dtype == torch.float32
        moved[precision], energies[precision] = after.x - x, info.energy
    error = (moved["float32"] - moved["bfloat16"]).norm() / moved["float32"].norm()
    assert 0 < error < 0.05
    torch.testing.assert_close(energies["float32"], energies["bfloat16"], atol=0.02, rtol=0.02)


def test_a_model_samples_in_the_fastest_precision_unless_told(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jem_core.bundle.fastest_precision", lambda device: "bfloat16")

    def kernel(**changes: str) -> KernelSettings:
        return bundle.sampler(bundle.sampling_with(changes)).settings

    assert kernel().precision == "bfloat16"
    assert kernel(precision="float32").precision == "float32"
    with pytest.raises(ValueError, match="precision is 'half'; choose float32 or bfloat16"):
        kernel(precision="half")
    condition = Condition.from_lists(bundle.names, ("Red",))
    fast = sample(bundle, condition, n=2, seed=0)
    exact = sample(bundle, condition, n=2, seed=0, precision="float32")
    assert not torch.equal(fast.images, exact.images)
    torch.testing.assert_close(fast.images, exact.images, atol=0.05, rtol=0)
    # What is said of the finished samples is said in single precision.
    torch.testing.assert_close(fast.probabilities, bundle.model.predict(fast.images), atol=1e-5, rtol=1e-4)


def test_the_context_ends() -> None:
    weight = torch.ones(2, 2)
    with compute_in("bfloat16", CPU):
        assert (weight @ weight).dtype == torch.bfloat16
    with compute_in("float32", CPU):
        assert (weight @ weight).dtype == torch.float32
    assert not torch.is_autocast_enabled("cpu")
