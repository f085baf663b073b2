"""The joint buffer: what each policy keeps, what a look-up finds, and that nothing is lost on disk."""

from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor

from jem_core.buffer import POLICIES, JointBuffer, decode, encode
from jem_core.random import generator


def numbered(first: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Images that carry their number in two pixels, its last three bits as labels, the same reversed as conditions."""
    number = torch.arange(first, first + count)
    x = torch.zeros(count, 3, 2, 2)
    x[:, 0, 0, 0] = (number % 256 + 0.5) / 256
    x[:, 1, 0, 0] = (number // 256 + 0.5) / 256
    labels = (number[:, None] >> torch.arange(3)) & 1
    return x, labels, 1 - labels


def numbers(buffer: JointBuffer) -> list[int]:
    images = buffer.images[: len(buffer)].long()
    found = images[:, 0, 0, 0] + 256 * images[:, 1, 0, 0]
    labels = (found[:, None] >> torch.arange(3)) & 1
    assert torch.equal(buffer.labels[: len(buffer)].long(), labels)  # image, labels and condition stay together
    assert torch.equal(buffer.conditions[: len(buffer)].long(), 1 - labels)
    return found.tolist()


def filled(policy: str, capacity: int, count: int, batch: int, seed: int = 0) -> JointBuffer:
    buffer, randomness = JointBuffer.empty(capacity, 2, 3, policy), generator(seed)
    for first in range(0, count, batch):
        buffer.push(*numbered(first, min(batch, count - first)), randomness)
    return buffer


@pytest.mark.parametrize("batch", [1, 3, 7, 16, 50])
@pytest.mark.parametrize("count", [5, 16, 40, 50])
def test_the_ring_keeps_the_newest(count: int, batch: int) -> None:
    buffer = filled("ring", 16, count, batch)
    assert sorted(numbers(buffer)) == list(range(max(0, count - 16), count))
    assert buffer.seen == count


def test_the_reservoir_is_a_uniform_sample_of_the_stream() -> None:
    """Chi-square: over 200 reservoirs of 20 from a stream of 100, every sample is kept equally often.

    In one reservoir a sample is kept with probability 1/5 and the kept ones repel each other, so the statistic
    sum (count - 40)^2 / (200 x 1/5 x 4/5) x 99/100 is chi-square with 99 degrees of freedom: mean 99, spread 14.
    """
    counts = torch.zeros(100, dtype=torch.float64)
    for seed in range(200):
        kept = numbers(filled("reservoir", 20, 100, batch=9, seed=seed))
        assert len(set(kept)) == 20
        counts[kept] += 1
    statistic = ((counts - 40).square() / (200 * 0.2 * 0.8)).sum().item() * 99 / 100
    assert 99 - 4 * 14.1 < statistic < 99 + 4 * 14.1
    assert abs(counts[:20].mean() - 40) < 4 * (32 / 20) ** 0.5  # neither the oldest
    assert abs(counts[-20:].mean() - 40) < 4 * (32 / 20) ** 0.5  # nor the newest are favoured


def test_the_chi_square_would_notice_a_ring() -> None:
    counts = torch.zeros(100, dtype=torch.float64)
    counts[numbers(filled("ring", 20, 100, batch=9))] = 200
    assert ((counts - 40).square() / 32).sum().item() > 1000


def test_in_place_writes_chains_back_to_their_slots() -> None:
    buffer = filled("in-place", 8, 8, 8)
    slots = torch.tensor([5, 2])
    buffer.push(*numbered(100, 2), generator(0), slots)
    assert numbers(buffer) == [0, 1, 101, 3, 4, 100, 6, 7]


def test_in_place_fills_up_first() -> None:
    buffer = filled("in-place", 8, 4, 2)
    buffer.push(*numbered(4, 2), generator(0), torch.tensor([0, 1]))
    assert numbers(buffer) == [0, 1, 2, 3, 4, 5]


def test_draws_are_different_slots_and_all_are_drawn() -> None:
    buffer = filled("ring", 16, 10, 10)
    randomness = generator(0)
    counts = torch.zeros(10)
    for _ in range(500):
        slots = buffer.draw(4, randomness)
        assert len(set(slots.tolist())) == 4
        counts[slots] += 1
    assert ((counts - 200).abs() < 4 * (500 * 0.4 * 0.6) ** 0.5).all()
    assert buffer.draw(30, randomness).max() < 10  # more than there are: some twice
    assert torch.equal(buffer.draw(4, generator(3)), buffer.draw(4, generator(3)))


def test_look_up_is_exact_for_every_condition() -> None:
    buffer = filled("ring", 64, 50, 50)
    buffer.labels[7, 1] = -1  # an unknown label
    for asked in product((-1, 0, 1), repeat=3):
        expected = [
            i
            for i, row in enumerate(buffer.labels[:50].tolist())
            if all(a in (-1, b) for a, b in zip(asked, row, strict=True))
        ]
        assert buffer.matching(torch.tensor(asked)).tolist() == expected


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("count", [0, 5, 30])
def test_a_file_keeps_everything(policy: str, count: int, tmp_path: Path) -> None:
    buffer = filled(policy, 12, count, 5)
    buffer.save(tmp_path / "buffer.safetensors")
    again = JointBuffer.load(tmp_path / "buffer.safetensors")
    assert (again.policy, again.seen, len(again), len(again.images)) == (policy, count, min(count, 12), 12)
    assert numbers(again) == numbers(buffer)
    for part in (buffer, again):  # and goes on in the same way
        part.push(*numbered(200, 3), generator(1))
    assert numbers(again) == numbers(buffer)


def test_bytes_survive_decoding() -> None:
    images = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).expand(40, 3, 16, 16)
    x = decode(images, generator(0))
    assert x.min() >= 0
    assert x.max() < 1
    assert (encode(x) != images).float().mean() < 1e-4  # 200 + 0.999999 is 201 in float32, once in 10^5
    assert abs((x - (images.float() + 0.5) / 256).mean()) < 1e-4  # nothing is lost on average
    assert encode(torch.tensor([0.0, 1.0])).tolist() == [0, 255]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: JointBuffer.empty(4, 2, 3, "fifo"),
            "no buffer policy 'fifo'; choose one of ring, reservoir, in-place",
        ),
        (lambda: JointBuffer.empty(0, 2, 3), "capacity is 0"),
        (lambda: JointBuffer.empty(4, 2, 3).draw(1, generator(0)), "empty; push samples"),
        (lambda: filled("ring", 4, 4, 4).matching(torch.tensor([-1])), "1 attributes, the buffer 3"),
        (
            lambda: JointBuffer(torch.zeros(2, 3, 2, 2).byte(), torch.zeros(1, 3).char(), torch.zeros(2, 3).char()),
            r"lengths \[2, 1, 2\]",
        ),
    ],
)
def test_misuse_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
