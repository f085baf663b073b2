"""What runs on the ranks of the distributed tests, and two ways to start them: torchrun, and processes of our own.

torchrun is how people start ranks, but it costs three new interpreters; a fork server has everything imported already.
"""

import multiprocessing
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save_file

from jem_core import distributed
from jem_core.config import make_config
from jem_core.data.dataset import Dataset
from jem_core.model import JointEnergyModel
from jem_core.networks.paper import PaperModel
from jem_core.networks.residual import ResidualModel
from jem_core.objectives.base import cross_entropy
from jem_core.objectives.contrast import contrastive_loss
from jem_core.objectives.denoising import denoise, weigh
from jem_core.random import generator
from jem_core.samplers import ChainState
from jem_core.trainer import Trainer
from tests.conftest import TINY_NET

ROOT = Path(__file__).parents[2]
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.jem_core.ranks", "train.fit", "torch._dynamo"])


def torchrun(ranks: int, module: str, *arguments: str) -> subprocess.CompletedProcess:
    """Run a module on this many ranks; a failure shows what it wrote."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", "-m", module]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"}
    done = subprocess.run(
        [*command, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return done


def on_ranks(ranks: int, function: Callable, *arguments: object) -> None:
    """Call `function(rank, ranks, *arguments)` on this many ranks that know each other as torchrun's do."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        PROCESSES.Process(target=_rank, args=(rank, ranks, port, function, arguments)) for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * ranks


def _rank(rank: int, ranks: int, port: int, function: Callable, arguments: tuple) -> None:
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    try:
        function(*distributed.start_ranks(torch.device("cpu")), *arguments)
        distributed.stop_ranks()
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # at once: the others would wait for this rank


def batch() -> tuple[JointEnergyModel, torch.Tensor, torch.Tensor, torch.Tensor, ChainState]:
    """A model and a batch of data and chains, the same for everybody."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = PaperModel("abcd", image_size=32, width=4)
    random = generator(1)
    x, fake = torch.rand(2, 8, 3, 32, 32, generator=random)
    labels, asked, y, chain_asked = torch.randint(-1, 2, (4, 8, 4), generator=random)
    return model, x, labels, asked, ChainState(fake, y.clamp(min=0), chain_asked, 1)


def gradients(rank: int, ranks: int, place: Path | None = None) -> dict[str, torch.Tensor]:
    """The gradient of this rank's part of the batch, averaged over the ranks as training does."""
    model, x, labels, asked, chains = batch()
    own = slice(rank * 8 // ranks, (rank + 1) * 8 // ranks)
    part = ChainState(chains.x[own], chains.y[own], chains.condition[own], 1)
    use = torch.ones(8 // ranks, dtype=torch.bool)
    contrastive_loss(model, x[own], labels[own], asked[own], part, use).loss.backward()
    return averaged(model, rank, place)


def denoising_gradients(rank: int, ranks: int, place: Path | None = None) -> dict[str, torch.Tensor]:
    """The same of the loss over noise levels, whose gradient runs through a gradient."""
    _, images, labels, asked, _ = batch()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = ResidualModel("abcd", image_size=32, **TINY_NET)
        for weight in model.parameters():  # half of them begin at zero, and so would their gradients
            weight.data += 0.05 * torch.randn(weight.shape)
    own = slice(rank * 8 // ranks, (rank + 1) * 8 // ranks)
    sigma = torch.logspace(-1, 1, 8)
    x = model.encode(images)
    noisy = x + sigma.view(-1, 1, 1, 1) * torch.randn(x.shape, generator=generator(2))
    denoised, logits = denoise(model, noisy[own], sigma[own], asked[own])
    error = (weigh(sigma[own]).view(-1, 1, 1, 1) * (denoised - x[own]) ** 2).mean()
    (error + cross_entropy(logits, labels[own])).backward()
    return averaged(model, rank, place)


def averaged(model: JointEnergyModel, rank: int, place: Path | None) -> dict[str, torch.Tensor]:
    distributed.average_gradients(model)
    found = {name: value.grad.contiguous() for name, value in model.named_parameters()}
    if place:
        save_file(found, place / f"gradients-{rank}.safetensors")
    return found


def calls(rank: int, ranks: int, place: Path) -> None:
    """Every small call once."""
    weights = torch.full((3,), float(rank + 1))
    distributed.broadcast([weights])
    mean = distributed.average({"rank": float(rank), "one": 1.0})
    distributed.wait_for_all()
    save_file({"weights": weights, "mean": torch.tensor(list(mean.values()))}, place / f"calls-{rank}.safetensors")


def train(rank: int, ranks: int, values: dict, data: Path, out: Path, until: int, resume: bool = False) -> None:
    """Train to an iteration. Only rank 0 is asked to stop there; all of them must."""
    trainer = Trainer(make_config(values), Dataset.open(data), out, resume=resume)
    for _ in trainer.run():
        if rank == 0 and trainer.iteration == until - 1:
            trainer.stopping = True
    assert trainer.iteration == until
    weights = {name: value.contiguous() for name, value in trainer.model.state_dict().items()}
    save_file(weights, out / f"weights-{rank}.safetensors")
