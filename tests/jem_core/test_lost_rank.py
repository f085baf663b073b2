"""A rank that stands still, or that is killed, does not keep the others waiting."""

import multiprocessing
import os
import signal
import socket
import time
from pathlib import Path

import pytest
import torch

from jem_core import distributed

PROCESSES = multiprocessing.get_context("spawn")
SECONDS = 4.0


def standing_still(rank: int, port: int, place: Path, how: int) -> None:
    """Both join; then rank 1 is stopped or killed, and rank 0 wants an average."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    distributed.start_ranks(torch.device("cpu"), SECONDS)
    distributed.wait_for_all()
    if rank == 1:
        os.kill(os.getpid(), how)
        return
    began = time.monotonic()
    try:
        distributed.average({"loss": 1.0})
        said = "nothing"
    except distributed.RankLost as error:
        said = str(error)
    (place / "said").write_text(f"{time.monotonic() - began:.1f}\n{said}")
    os._exit(0)


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_the_others_give_up_in_time_and_say_what_to_do(how: int, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [PROCESSES.Process(target=standing_still, args=(rank, port, tmp_path, how)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    try:
        ranks[0].join(120)
        assert ranks[0].exitcode == 0
        seconds, said = (tmp_path / "said").read_text().split("\n", 1)
        assert float(seconds) < SECONDS + 20
        assert "Rank 0 stops: another rank did not share its figures" in said
        assert "--resume" in said
    finally:
        for rank in ranks:
            rank.kill()
            rank.join()
