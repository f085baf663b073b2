"""Many visitors at once: python tests/load/visitors.py [--visitors 200] [--minutes 3] [--rounds 1] [--model DIR].

Each opens the page, runs chains from a seed of its own, goes on from where they were, steers, sometimes sends a
picture, pauses, leaves (now and then in the middle of a run) and comes back; ten share an address. Where the server is
full it must say so at once, with how long to wait. Prints one table; the exit code is 1 when a run was lost, when
chains or frames were another visitor's, when a refusal took longer than --patience seconds, on a traceback in the
server's log, when the memory at rest does not settle in a few short rounds that warm the server, or when it is more
than --growth percent above that after a round.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import (
    Event,
    Refused,
    Server,
    Tab,
    checked,
    events_of,
    memory,
    new_http,
    percentile,
    start_server,
    stop_server,
)
from reference import PAUSES, reference

STEPS = 20  # of the whole way
CHAINS = 4
SHARING = 10  # visitors of one address
MOST_WARMING = 8  # short rounds before the first figure
SETTLING = 4  # seconds for the server to sweep up what visitors left
LONGEST_WAIT = 5.0  # seconds that a visitor who was told to come later stays away, however long the server said
FULL = 429


@dataclass
class Figures:
    """What happened to all visitors together."""

    finished: int = 0
    steps: int = 0
    visits: int = 0
    told: list[float] = field(default_factory=list)  # how long it took to say that there is no place
    untold: int = 0  # refusals without how long to wait
    left_midway: int = 0
    lost: list[str] = field(default_factory=list)
    crossed: list[str] = field(default_factory=list)
    first_frame: list[float] = field(default_factory=list)
    steer: list[float] = field(default_factory=list)
    uploads: list[float] = field(default_factory=list)


def requests(visitors: int, models: dict[str, list[str]]) -> list[dict]:
    """The settings of each visitor: a seed, a model and a condition of its own."""
    names = list(models)
    found = []
    for number in range(visitors):
        model = names[number % len(names)]
        attributes = models[model]
        settings = {"model": model, "chains": CHAINS, "seed": 1000 + number, "speed": 0, "steps": STEPS}
        found.append(settings | {"with": [attributes[number % len(attributes)]]})
    return found


class Visitor:
    """One person who comes again and again."""

    def __init__(self, number: int, settings: dict, expected: list[str], figures: Figures) -> None:
        self.name, self.settings, self.expected, self.figures = f"visitor {number}", settings, expected, figures
        self.address = f"127.0.{1 + number // SHARING}.1"
        self.random = random.Random(number)
        self.order = 0

    def letter(self, run: str, playing: bool = True, **changes: object) -> dict:
        self.order += 1
        letter = {"order": self.order, "run": run, "playing": playing, "fresh": 0, "step": 0, "fps": 18}
        return letter | {"settings": self.settings | changes}

    async def come(self, server: Server, events: dict[str, Event], until: float) -> None:
        """Visit after visit until the time is over; at least one."""
        async with new_http(server.url, self.address) as http:
            while True:
                wait = self.random.uniform(0.2, 3)
                self.figures.visits += 1
                try:
                    await self.visit(http, events)
                except Refused as error:
                    if error.status == FULL:
                        self.figures.told.append(error.took)
                        self.figures.untold += not error.wait
                        wait = min(error.wait, LONGEST_WAIT)
                    else:
                        self.figures.lost.append(f"{self.name}: {error}")
                except (httpx.HTTPError, KeyError, TypeError, ValueError) as error:
                    self.figures.lost.append(f"{self.name}: {type(error).__name__} {error}")
                if time.monotonic() >= until:
                    return
                await asyncio.sleep(wait)

    async def visit(self, http: httpx.AsyncClient, events: dict[str, Event]) -> None:
        began = time.monotonic()
        checked(await http.get("/"), time.monotonic() - began)
        async with Tab(http, events) as tab:
            await tab.ask("hello", None)
            for pause, expected in zip(PAUSES, self.expected, strict=True):
                last = await self.run(tab, pause)
                if last["digest"] != expected or last["step"] != pause:
                    self.figures.crossed.append(f"{self.name}: {last['digest']} at step {last['step']}")
                await asyncio.sleep(self.random.uniform(0, 1))
            if self.random.random() < 0.4:
                await self.upload(tab)
            await self.steer(tab, leave=self.random.random() < 0.2)

    async def frames(self, tab: Tab, letter: dict):
        """The frames of one run; each must be this run's, as this visitor asked."""
        began, first = time.monotonic(), True
        async for frame in tab.stream("run", letter | {"action": "run"}):
            if first:
                self.figures.first_frame.append(time.monotonic() - began)
                first = False
            if frame["run"] != letter["run"]:
                self.figures.crossed.append(f"{self.name}: a frame of {frame['run']}")
            if frame["status"] == "error":
                raise Refused(200, frame["message"])
            yield frame

    async def run(self, tab: Tab, pause: int) -> dict:
        """An exact run that stands still after some steps."""
        last, started = {}, None
        async for frame in self.frames(tab, self.letter(self.new_run(), pause=pause)):
            started = frame["step"] if started is None else started
            last = frame
        if last.get("status") != "paused":
            raise ValueError(f"a run ended as {last.get('status')}")
        self.figures.finished += 1
        self.figures.steps += last["step"] - started
        return last

    async def steer(self, tab: Tab, leave: bool) -> None:
        """A free run that is steered on the way; then a pause, or the tab is closed in the middle."""
        name, other, posted, shown, started = self.new_run(), self.settings["with"], None, None, None
        async for frame in self.frames(tab, self.letter(name, speed=30)):
            started = frame["step"] if started is None else started
            if posted is None:
                other = []
                letter, posted = self.letter(name, speed=30, **{"with": other}), time.monotonic()
                reply = await tab.ask("post", letter)
                if reply["kind"] != "steered":
                    raise Refused(200, str(reply))
            elif shown is None and frame["order"] >= letter["order"]:
                shown = time.monotonic() - posted
                self.figures.steer.append(shown)
                if frame["with"] != other:
                    self.figures.crossed.append(f"{self.name}: {frame['with']} was shown for {other}")
                if leave:
                    self.figures.left_midway += 1
                    return
                await tab.ask("post", self.letter(name, playing=False, **{"with": other}))
        if shown is None or frame["status"] not in ("paused", "settled"):
            raise ValueError(f"a steered run ended as {frame['status']}, steering shown: {shown is not None}")
        self.figures.finished += 1
        self.figures.steps += frame["step"] - started

    async def upload(self, tab: Tab) -> None:
        """A picture, on the screen or by the documented endpoint."""
        target = io.BytesIO()
        colour = tuple(self.random.randrange(256) for _ in range(3))
        Image.new("RGB", (200, 150), colour).save(target, "JPEG")
        data, began = base64.b64encode(target.getvalue()).decode(), time.monotonic()
        if self.random.random() < 0.5:
            asked = {"order": 7, "data": data, "model": self.settings["model"]}
            answer = [value async for value in tab.stream("show", asked)][-1]
        else:
            answer = [value async for value in tab.stream("predict", None, [data, self.settings["model"], 1])][-1]
        if answer["model"] != self.settings["model"] or not answer["rows"]:
            self.figures.lost.append(f"{self.name}: an upload got {str(answer)[:200]}")
        self.figures.uploads.append(time.monotonic() - began)

    def new_run(self) -> str:
        return f"v{self.random.randrange(36**8):x}"


async def crowd(server: Server, settings: list[dict], expected: list, seconds: float) -> tuple[Figures, list[float]]:
    """All visitors at once; the figures, and the memory of the server every half second."""
    figures, sizes = Figures(), []
    until = time.monotonic() + seconds
    async with new_http(server.url) as http:
        events = await events_of(http)
    everybody = zip(range(len(settings)), settings, expected, strict=True)
    tasks = [asyncio.create_task(Visitor(*one, figures).come(server, events, until)) for one in everybody]
    while not all(task.done() for task in tasks):
        sizes.append(memory(server.process.pid))
        await asyncio.sleep(0.5)
    await asyncio.gather(*tasks)
    return figures, sizes


async def models_of(server: Server) -> dict[str, list[str]]:
    async with new_http(server.url) as http:
        hello = await Tab(http, await events_of(http)).ask("hello", None)
    return {model["name"]: model["names"] for model in hello["models"]}


@dataclass
class Rounds:
    """Crowd after crowd on one server; the memory at rest after each, and what went wrong in any of them."""

    server: Server
    args: argparse.Namespace
    settings: list[dict]
    expected: list[list[str]]
    figures: Figures = field(default_factory=Figures)  # of the last round, but what was lost or crossed of all
    resting: list[float] = field(default_factory=list)
    peak: float = 0.0
    took: float = 0.0
    slow: int = 0
    untold: int = 0

    def play(self, seconds: float) -> None:
        before, began = self.figures, time.monotonic()
        self.figures, sizes = asyncio.run(crowd(self.server, self.settings, self.expected, seconds))
        self.figures.lost, self.figures.crossed = before.lost + self.figures.lost, before.crossed + self.figures.crossed
        self.slow += sum(took > self.args.patience for took in self.figures.told)
        self.untold += self.figures.untold
        self.took, self.peak = time.monotonic() - began, max(self.peak, *sizes)
        time.sleep(self.args.idle + SETTLING)
        self.resting.append(memory(self.server.process.pid))

    def warm(self) -> bool:
        """Short rounds until two in a row leave the same memory: until every model and every kind of request was
        served once, what is loaded for good still grows. Whether that ever came; a server that leaks never rests."""
        for _ in range(MOST_WARMING):
            self.play(20 * self.args.minutes)
            if len(self.resting) > 1 and abs(self.growth(-2)[0]) <= self.args.steady:
                return True
        return False

    def growth(self, since: int) -> list[float]:
        """In percent, of each figure after this one."""
        first, *others = self.resting[since:]
        return [100 * (size / first - 1) for size in others]


def measure(server: Server, args: argparse.Namespace) -> tuple[Figures, dict, bool]:
    """Let the visitors in: to warm the server, then round after round. Whether all is well comes last."""
    settings = requests(args.visitors, asyncio.run(models_of(server)))
    rounds = Rounds(server, args, settings, reference(settings, args.model, args.threads))
    steady = rounds.warm()
    for _ in range(args.rounds):
        rounds.play(60 * args.minutes)
    figures, growth = rounds.figures, rounds.growth(-1 - args.rounds)
    tracebacks = server.log().count("Traceback (most recent call last)")
    trouble = figures.lost or figures.crossed or tracebacks or rounds.slow or rounds.untold
    good = not trouble and steady and figures.finished > 0 and max(growth) <= args.growth
    rows = table(args, figures, rounds.took, tracebacks)
    warming, measured = rounds.resting[: -args.rounds], rounds.resting[-args.rounds :]
    rows["memory at rest while it was warmed"] = f"{shown(warming)}, {'' if steady else 'not '}steady"
    rows["memory at rest after each round"] = shown(measured)
    rows["its growth, and the peak"] = f"{', '.join(f'{one:+.1f} %' for one in growth)}; {rounds.peak:.0f} MB"
    return figures, rows, good


def shown(sizes: list[float]) -> str:
    return " / ".join(f"{size:.0f}" for size in sizes) + " MB"


def table(args: argparse.Namespace, figures: Figures, took: float, tracebacks: int) -> dict:
    """Of the last round; what was lost or crossed of all."""
    return {
        "visitors": args.visitors,
        "visits": figures.visits,
        "minutes": f"{took / 60:.1f}",
        "load of the machine": f"{os.getloadavg()[0]:.1f}",
        "runs finished": figures.finished,
        "runs lost": f"{len(figures.lost)} {figures.lost[:3] or ''}",
        "chains or frames of others": f"{len(figures.crossed)} {figures.crossed[:3] or ''}",
        "tabs closed in the middle of a run": figures.left_midway,
        "told that the server is full": f"{len(figures.told)}, p50 / p95 / most {percentiles(figures.told)}",
        "steps per second": f"{figures.steps / took:.1f} ({CHAINS} chains each)",
        "first frame, p50 / p95 / most": percentiles(figures.first_frame),
        "steer to shown, p50 / p95 / most": percentiles(figures.steer),
        "uploads": len(figures.uploads),
        "upload to answer, p50 / p95 / most": percentiles(figures.uploads),
        "tracebacks in the log": tracebacks,
    }


def percentiles(values: list[float]) -> str:
    return " / ".join(f"{percentile(values, share):.2f} s" for share in (0.5, 0.95, 1.0)) if values else "-"


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=1, help="of so many minutes, one after another")
    parser.add_argument("--model", action="append", default=[], help="a model besides the bundled ones")
    parser.add_argument("--threads", type=int, default=1, help="of the server and of the reference")
    parser.add_argument("--idle", type=int, default=30, help="seconds after which the server forgets who has left")
    parser.add_argument("--growth", type=float, default=5, help="percent by which the memory may rise in the rounds")
    parser.add_argument("--steady", type=float, default=1, help="percent by which it may differ when it is warmed")
    parser.add_argument("--patience", type=float, default=6, help="seconds in which a refusal must have come")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    args = options(words)
    variables = {"GIBBS_JEM_IDLE_SECONDS": str(args.idle), "OMP_NUM_THREADS": str(args.threads)}
    with tempfile.TemporaryDirectory() as folder:
        server = start_server(Path(folder) / "log.txt", [Path(model) for model in args.model], **variables)
        try:
            _, rows, good = measure(server, args)
        finally:
            stop_server(server)
    for name, value in rows.items():
        print(f"{name:46}{value}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
