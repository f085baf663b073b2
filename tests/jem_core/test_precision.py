"""Half the digits in the convolutions, where the hardware has them: the same step but for a percent."""

import pytest
import torch

from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.precision import compute_in, fastest_precision
from jem_core.random import generator
from jem_core.samplers import LangevinSettings, Sampler
from jem_core.sampling import sample

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


@pytest.mark.parametrize("name", ["resampling", "marginalizing"])
def test_a_step_moves_the_same_way_in_both(tiny_bundle: Bundle, name: str) -> None:
    """Images and energies stay in single precision; the move agrees to a few percent, and is not the same bits."""
    x = torch.rand(4, 3, 32, 32, generator=generator(0))
    condition = Condition.from_lists(tiny_bundle.names, ("Red",)).tensor(4)
    moved, energies = {}, {}
    for precision in ("float32", "bfloat16"):
        settings = LangevinSettings(grad_coef=1.0, noise_std=0.0, clamp=False, precision=precision)
        sampler = Sampler(name, tiny_bundle.model, settings)
        state = sampler.init(x, condition, generator(1), y=condition.clamp(min=0))
        after, info = sampler.langevin(state, generator(2))
        assert after.x.dtype == info.energy.dtype == torch.float32
        moved[precision], energies[precision] = after.x - x, info.energy
    error = (moved["float32"] - moved["bfloat16"]).norm() / moved["float32"].norm()
    assert 0 < error < 0.05
    torch.testing.assert_close(energies["float32"], energies["bfloat16"], atol=0.02, rtol=0.02)


def test_a_model_samples_in_the_fastest_precision_unless_told(
    tiny_bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jem_core.bundle.fastest_precision", lambda device: "bfloat16")
    assert tiny_bundle.langevin()[0].precision == "bfloat16"
    assert tiny_bundle.langevin(precision="float32")[0].precision == "float32"
    with pytest.raises(ValueError, match="precision is 'half'; choose float32 or bfloat16"):
        tiny_bundle.langevin(precision="half")
    condition = Condition.from_lists(tiny_bundle.names, ("Red",))
    fast = sample(tiny_bundle, condition, n=2, seed=0)
    exact = sample(tiny_bundle, condition, n=2, seed=0, precision="float32")
    assert not torch.equal(fast.images, exact.images)
    torch.testing.assert_close(fast.images, exact.images, atol=0.05, rtol=0)
    # What is said of the finished samples is said in single precision.
    torch.testing.assert_close(fast.probabilities, tiny_bundle.model.predict(fast.images))


def test_the_context_ends() -> None:
    weight = torch.ones(2, 2)
    with compute_in("bfloat16", CPU):
        assert (weight @ weight).dtype == torch.bfloat16
    with compute_in("float32", CPU):
        assert (weight @ weight).dtype == torch.float32
    assert not torch.is_autocast_enabled("cpu")
