"""How finely the convolutions of a Langevin step are computed: bfloat16 where the hardware multiplies it natively."""

import torch

PRECISIONS = ("float32", "bfloat16")


def fastest_precision(device: torch.device) -> str:
    """bfloat16 takes half the time on processors and GPUs that have it, and several times as long on all others."""
    native = False
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    elif device.type == "cpu":
        capabilities = torch.cpu.get_capabilities()
        native = bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
    return "bfloat16" if native else "float32"


def compute_in(precision: str, device: torch.device) -> torch.autocast:
    """A context in which convolutions compute so; weights, images and energies stay in single precision."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
