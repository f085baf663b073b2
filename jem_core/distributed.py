"""Data-parallel training in a few calls: one process a rank, gradients averaged after backward."""

import os
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn


def start_ranks(device: torch.device) -> tuple[int, int]:
    """(rank, number of ranks); joins the group when torchrun started us: gloo on CPU, nccl on GPUs."""
    if "RANK" not in os.environ:
        return 0, 1
    if device.type == "cuda":  # from here on "cuda" means this rank's own
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return dist.get_rank(), dist.get_world_size()


def stop_ranks() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def broadcast(tensors: Iterable[Tensor]) -> None:
    """Rank 0's values for everybody."""
    if dist.is_initialized():
        for tensor in tensors:
            dist.broadcast(tensor, src=0)


def average_gradients(model: nn.Module) -> None:
    """Replace each gradient by its mean over the ranks, in one message."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return
    grads = [weight.grad for weight in model.parameters() if weight.grad is not None]
    flat = torch.cat([grad.flatten() for grad in grads])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for grad, part in zip(grads, flat.split([grad.numel() for grad in grads]), strict=True):
        grad.copy_(part.view(grad.shape))


def average(values: dict[str, float]) -> dict[str, float]:
    """Each number's mean over the ranks, so that every rank takes the same decisions."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return values
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    flat = torch.tensor(list(values.values()), dtype=torch.float64, device=device)
    dist.all_reduce(flat)
    return dict(zip(values, (flat / dist.get_world_size()).tolist(), strict=True))


def wait_for_all() -> None:
    if dist.is_initialized():
        dist.barrier()
