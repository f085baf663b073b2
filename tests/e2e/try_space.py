"""Try a Space as its host would: write it, install it into a new environment, start it, and use it.

    python tests/e2e/try_space.py [--add MODEL] [--picture FILE.png] [--folder DIR]

Not part of the test run: it installs 1.4 GB. Needs what requirements-dev.txt lists, and chromium. Prints what each step
took; ends with 1 where something is not as it should be. With --folder, Space and environment are kept and used again.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from driver import Studio
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
CLIENT = """
import base64, io, json, sys
from gradio_client import Client
from PIL import Image

client = Client(sys.argv[1], verbose=False)
answer = client.predict([], n=2, steps=3, api_name="/synthesize")
assert all(image.startswith("data:image/png;base64,") for image in answer["images"])
Image.new("RGB", (64, 64), "red").save(target := io.BytesIO(), "PNG")
seen = client.predict(base64.b64encode(target.getvalue()).decode(), api_name="/predict")
endpoints = sorted(client.view_api(print_info=False, return_format="dict")["named_endpoints"])
print(json.dumps({"images": len(answer["images"]), "rows": len(seen["rows"]), "endpoints": endpoints}))
"""


@contextmanager
def timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    print(f"{what} ...", end=" ", flush=True)
    yield
    print(f"{time.monotonic() - began:.1f} s", flush=True)


def call(*command: str | Path, cwd: Path) -> str:
    """Run a command that knows nothing of this repository but what is in its directory."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"\n{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def install(space: Path, venv: Path) -> Path:
    """A new environment with what the Space's requirements name, and nothing else."""
    python = venv / "bin" / "python"
    if not python.exists():
        call(sys.executable, "-m", "venv", venv, cwd=space)
    call(python, "-m", "pip", "install", "--quiet", "-r", "requirements.txt", cwd=space)
    return python


@contextmanager
def served(command: Sequence[str | Path], folder: Path, log: Path) -> Iterator[str]:
    """The app, started by this command in this directory, until it answers; ended afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"GRADIO_SERVER_PORT": str(port), "PYTHONUNBUFFERED": "1"}
    with log.open("w") as target:
        process = subprocess.Popen(
            command, cwd=folder, env=environment() | settings, stdout=target, stderr=subprocess.STDOUT
        )
    try:
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 180
        while True:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"\nThe app did not start:\n{log.read_text()}")
            try:
                urllib.request.urlopen(url, timeout=2).read()
                break
            except OSError:
                time.sleep(0.2)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def use(url: str, picture: Path | None) -> dict:
    """What a visitor does: watch the chains move, toggle an attribute, pause."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        studio = Studio(browser.new_page(viewport={"width": 1440, "height": 900}), url).open()
        first = studio.step
        studio.wait_step(first + 3)
        name = studio.page.locator('.gj-chip[data-state="free"]').first.get_attribute("data-name")
        studio.chip(name).click()
        studio.until("(name) => window.gibbsJem.store.settings.with.includes(name)", name)
        required = studio.setting("with")
        studio.wait_step(studio.step + 3)
        if picture:
            studio.page.screenshot(path=picture)
        studio.pause()
        facts = {"steps": studio.step, "toggled": name, "required": required, "digest": studio.digest}
        studio.clean()
        browser.close()
    if name not in required or not facts["digest"]:
        raise SystemExit(f"\nThe page did not do as it was told: {facts}")
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", type=Path, action="append", default=[], help="a model to bundle besides those here")
    work(parser, attempt)
    print("The Space works.")


def work(parser: argparse.ArgumentParser, attempt: Callable[[Path, argparse.Namespace], None]) -> None:
    """In the folder that is asked for, which stays, or in one that goes."""
    parser.add_argument("--picture", type=Path, help="where a screenshot goes")
    parser.add_argument("--folder", type=Path, help="where to work; kept afterwards")
    args = parser.parse_args()
    if args.folder:
        args.folder.mkdir(parents=True, exist_ok=True)
        attempt(args.folder.resolve(), args)
    else:
        with tempfile.TemporaryDirectory(prefix="try-") as place:
            attempt(Path(place), args)


def attempt(folder: Path, args: argparse.Namespace) -> None:
    space, log = folder / "space", folder / "log.txt"
    added = [part for model in args.add for part in ("--add", model.resolve())]
    with timed("python -m train space"):
        call(sys.executable, "-m", "train", "space", space, *added, cwd=ROOT)
    with timed("new environment, pip install -r requirements.txt"):
        python = install(space, folder / "venv")
    began = time.monotonic()
    with served([python, "app.py"], space, log) as url:
        print(f"python app.py, first answer ... {time.monotonic() - began:.1f} s", flush=True)
        with timed("in the browser"):
            facts = use(url, args.picture)
        print(f"  {json.dumps(facts)}", flush=True)
        with timed("gradio_client"):
            answer = call(python, "-c", CLIENT, url, cwd=folder)
        print(f"  {answer.strip()}", flush=True)
    check_log(log)


def check_log(log: Path) -> None:
    trouble = [line for line in log.read_text().splitlines() if "Traceback" in line or "Error" in line]
    if trouble:
        raise SystemExit(f"The server's log holds errors: {trouble[0]}")


if __name__ == "__main__":
    main()
