"""Data-parallel training in a few calls: one process per rank, gradients averaged after backward.

A rank that does not answer within the deadline ends the others with RankLost: they do not wait for half an hour.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn

# Far longer than any rank works alone (fitting the start, evaluating, writing a checkpoint).
SECONDS = 120.0


class RankLost(ValueError):
    """Another rank has ended or does not answer."""


def start_ranks(device: torch.device, seconds: float = SECONDS) -> tuple[int, int]:
    """(rank, number of ranks); joins the group when torchrun started us: gloo on CPU, nccl on GPUs.

    `seconds` is how long a rank waits for the others before it gives up.
    """
    if "RANK" not in os.environ:
        return 0, 1
    if device.type == "cuda":  # from here on "cuda" means this rank's own
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    if not dist.is_initialized():
        backend = "nccl" if device.type == "cuda" else "gloo"
        with _answering("join"):
            dist.init_process_group(backend, timeout=timedelta(seconds=seconds))
    return dist.get_rank(), dist.get_world_size()


def stop_ranks() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def broadcast(tensors: Iterable[Tensor]) -> None:
    """Rank 0's values for everybody."""
    if dist.is_initialized():
        with _answering("receive the weights"):
            for tensor in tensors:
                dist.broadcast(tensor, src=0)


def average_gradients(model: nn.Module) -> None:
    """Replace each gradient by its mean over the ranks, in one message."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return
    grads = [weight.grad for weight in model.parameters() if weight.grad is not None]
    flat = torch.cat([grad.flatten() for grad in grads])
    with _answering("share its gradient"):
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
    with _answering("share its figures"):
        dist.all_reduce(flat)
    return dict(zip(values, (flat / dist.get_world_size()).tolist(), strict=True))


def wait_for_all() -> None:
    if dist.is_initialized():
        with _answering("catch up"):
            dist.barrier()


@contextmanager
def _answering(what: str) -> Iterator[None]:
    """The group's own error says which socket closed or how many milliseconds have passed; a sentence says what to do.

    nccl ends the process itself, by its watchdog, after the same time.
    """
    try:
        yield
    except RuntimeError as error:  # dist.DistError among them
        rank = dist.get_rank() if dist.is_initialized() else os.environ["RANK"]
        raise RankLost(
            f"Rank {rank} stops: another rank did not {what} in time, or has ended. "
            f"Begin again from the last checkpoint with --resume ({str(error).splitlines()[0][:120]})."
        ) from error
