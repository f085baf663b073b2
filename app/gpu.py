"""ZeroGPU: where a Space has it, sampling runs in a forked worker that holds a GPU for a while. Elsewhere: no change.

    stream = on_gpu(stream, duration=lambda *request: 40)

The worker shares nothing with the server after the fork: steer it through a file (app.mailbox), never through a global.
Tensors and generators cross by value; in the server they are on the CPU, in the worker on its GPU. There is no
torch.compile here, because a worker lives too short for it to pay.
"""

from __future__ import annotations

import inspect
import io
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import wraps

import gradio as gr
import numpy as np
import torch

LONGEST = 60.0  # seconds that one call may ask for: a visitor's share of a day is a few minutes
SPARE = 8.0  # of them, for the worker to start and to end before it is ended
IMAGE_STEPS_PER_SECOND = 4_000  # that a GPU makes at the very least
_server = os.getpid()


def on_zero_gpu() -> bool:
    """Whether this is a Space that lends its GPUs by the call."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def device() -> str:
    """Where the process that asks may compute now: on ZeroGPU the server itself has no GPU, its workers have."""
    if on_zero_gpu() and os.getpid() == _server:
        return "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"


def run_budget(seconds: float) -> float:
    """How long a run may go on before it rests: no longer than a worker may keep its GPU."""
    return min(seconds, LONGEST - SPARE) if on_zero_gpu() else seconds


def time_for(image_steps: int) -> float:
    """Seconds to ask for when it is known how many steps of how many images are to be made."""
    return SPARE + image_steps / IMAGE_STEPS_PER_SECOND


def on_gpu(function: Callable, duration: Callable[..., float]) -> Callable:
    """The function, run on a ZeroGPU worker where there is one; `duration` tells from the arguments for how long.

    Works for generators (frames come as they are made, closing it stops the worker at its next frame) and for plain
    functions. Off ZeroGPU the function itself comes back and the package `spaces` need not be installed.
    """
    if not on_zero_gpu():
        return function
    import spaces

    streams = inspect.isgeneratorfunction(function)
    gpu = spaces.GPU(duration=lambda parcel, seconds: seconds)(_streaming(function) if streams else _plain(function))

    def send(*args: object, **kwargs: object) -> object:
        seconds = min(max(duration(*args, **kwargs), SPARE), LONGEST)
        return gpu(_pack((args, kwargs)), seconds)

    @wraps(function)
    def stream(*args: object, **kwargs: object) -> Iterator:
        if os.getpid() != _server:
            yield from function(*args, **kwargs)  # called from a worker: this is the GPU
            return
        with closing(send(*args, **kwargs)) as parcels:
            for parcel in parcels:
                yield _unpack(parcel)

    @wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        if os.getpid() != _server:
            return function(*args, **kwargs)
        return _unpack(send(*args, **kwargs))

    return stream if streams else call


def _streaming(function: Callable) -> Callable:
    def work(parcel: bytes, seconds: float) -> Iterator[bytes]:
        args, kwargs = _open(parcel)
        with closing(function(*args, **kwargs)) as results:
            for result in results:
                yield _pack(result)

    return work


def _plain(function: Callable) -> Callable:
    def work(parcel: bytes, seconds: float) -> bytes:
        args, kwargs = _open(parcel)
        try:
            return _pack(function(*args, **kwargs))
        except ValueError as error:
            raise gr.Error(str(error), print_exception=False) from error  # the one kind whose words come through

    return work


def _open(parcel: bytes) -> tuple[tuple, dict]:
    """What a worker does first."""
    torch.set_num_threads(1)  # the server's threads did not come along through the fork; waiting for them hangs
    return _unpack(parcel)


class _Packer(pickle.Pickler):
    """`spaces` pickles what crosses, and so does this, with tensors and generators made independent of their device.

    Both ends are this program. Nothing from a file or a visitor is ever unpickled.
    """

    def reducer_override(self, value: object) -> object:
        if isinstance(value, torch.Tensor):
            return _tensor, (value.detach().cpu().numpy(),)
        if isinstance(value, torch.Generator):
            return _generator, (value.device.type, value.get_state().numpy())
        if isinstance(value, gr.Request):
            raise TypeError("A gr.Request belongs to the server's process; hand over what is needed of it instead.")
        return NotImplemented


@dataclass(frozen=True)
class KeptGenerator:
    """A worker's generator while the server keeps it: the server has no GPU to make it on."""

    kind: str
    state: np.ndarray

    def __reduce__(self) -> tuple:
        return _generator, (self.kind, self.state)


def _pack(value: object) -> bytes:
    target = io.BytesIO()
    _Packer(target, protocol=5).dump(value)
    return target.getvalue()


def _unpack(parcel: bytes) -> object:
    return pickle.loads(parcel)


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array).to(device())


def _generator(kind: str, state: np.ndarray) -> torch.Generator | KeptGenerator:
    if kind != "cpu" and device() == "cpu":
        return KeptGenerator(kind, state)
    generator = torch.Generator(device=kind)
    generator.set_state(torch.from_numpy(state))
    return generator
