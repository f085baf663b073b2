"""Measure the first screen in a real browser: python tests/e2e/measure_first_screen.py [--open celeba] [--chains 16].

Reports, as one JSON object: seconds from `python app.py` to the first moving frame; milliseconds from a click on a chip
until the pictures change, and until they have settled; frames per second really shown while pictures keep moving, read
back from the canvas (where steps are slow, the page lets one melt into the next), and steps per second; processor time
and memory; seconds until the work ends after the tab is closed. With --minutes, how memory and pictures fare while they
keep moving for so long. With --check, what is beyond the limits is named and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from driver import Studio
from playwright.sync_api import Browser, sync_playwright
from serve import FLAGS, Server, start_server, stop_server

# What --check demands of 16 chains on two idle cores: a figure, where it stands, and its limit.
AT_MOST = (
    (("click_to_screen_ms", "median"), 250),
    (("click_to_settled_ms", "median"), 3_000),
    (("seconds_to_first_moving_frame",), 10),
)
AT_LEAST = ((("moving", "frames_shown_per_second"), 15),)

# Reads the canvas back at every repaint of the screen: a frame counts when the pixels have really changed.
WATCH = """() => {
  const big = document.querySelector('.gj-canvas'), small = document.createElement('canvas');
  small.width = small.height = 32;
  const context = small.getContext('2d', { willReadFrequently: true });
  context.globalCompositeOperation = 'copy'; // what was there before must not shine through the gaps
  window.watched = { frames: 0, began: performance.now(), repaints: 0 };
  let last = '';
  const look = () => {
    window.watched.repaints += 1;
    context.drawImage(big, 0, 0, 32, 32);
    const now = context.getImageData(0, 0, 32, 32).data.join();
    if (now !== last) { window.watched.frames += 1; last = now; }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def measure(args: argparse.Namespace) -> dict:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        began = time.monotonic()
        threads = {"OMP_NUM_THREADS": str(args.threads)}
        server = start_server(Path(folder) / "log.txt", [Path(model) for model in args.model], **threads)
        try:
            return measure_server(server, browser, began, args)
        finally:
            stop_server(server)
            browser.close()


def measure_server(server: Server, browser: Browser, began: float, args: argparse.Namespace) -> dict:
    served = time.monotonic() - began
    studio = visit(server, browser, chains=args.chains, **({"model": args.open} if args.open else {}))
    studio.until("() => window.gibbsJem.counters.shownStep > 0")
    figures = {"chains": args.chains, "load": os.getloadavg()[0], "threads": args.threads}
    figures |= {"seconds_to_serve": served, "seconds_to_first_moving_frame": time.monotonic() - began}
    figures["model"] = studio.setting("model")
    studio.settle()
    studio.page.evaluate(WATCH)
    figures |= latencies(studio, args.toggles)
    arrival = look(studio, server)
    studio.press("moving")
    figures["moving"] = rates(studio, args.seconds)
    studio.fold_out(".gj-hood")
    studio.page.locator(".gj-speed input").fill("7")
    figures["moving_at_full_speed"] = rates(studio, args.seconds)
    figures["megabytes"] = server.megabytes()
    if args.minutes:
        figures["long_run"] = long_run(studio, server, args.minutes, arrival)
    studio.pause()
    before, moment = server.cpu_seconds(), time.monotonic()
    time.sleep(2)
    figures["cpu_share_paused"] = (server.cpu_seconds() - before) / (time.monotonic() - moment)
    studio.press("main")
    studio.wait_step(studio.step + 5)
    studio.page.close()
    figures["seconds_until_work_ends"] = seconds_to_rest(server)
    return figures


def visit(server: Server, browser: Browser, **settings: object) -> Studio:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    return Studio(page, server.url).open(**settings)


def rates(studio: Studio, seconds: float) -> dict:
    """Frames shown and steps made per second, over some seconds."""
    state = "() => ({ ...window.watched, step: window.gibbsJem.store.step, now: performance.now() })"
    time.sleep(1.5)
    first = studio.page.evaluate(state)
    time.sleep(seconds)
    last = studio.page.evaluate(state)
    span = (last["now"] - first["now"]) / 1000
    keys = {"frames_shown": "frames", "steps": "step", "repaints": "repaints"}
    return {f"{name}_per_second": (last[key] - first[key]) / span for name, key in keys.items()}


def latencies(studio: Studio, toggles: int) -> dict:
    """From the click on a chip until the canvas has really changed, and until the pictures have settled."""
    name = studio.page.evaluate("() => window.gibbsJem.model().names[0]")
    script = """(name) => new Promise((resolve) => {
      const began = performance.now(), { store, counters } = window.gibbsJem;
      document.querySelector(`.gj-chip[data-name=${name}]`).click();
      const before = window.watched.frames;
      let first = 0;
      const look = () => {
        if (!first && window.watched.frames > before) first = performance.now() - began;
        if (first && store.status === 'settled' && document.querySelector('.gj-canvas').dataset.digest)
          resolve([first, counters.shownAt - began]);
        else requestAnimationFrame(look);
      };
      look();
    })"""
    took = [studio.page.evaluate(script, name) for _ in range(toggles)]
    return {
        name: {"median": statistics.median(column), "p95": sorted(column)[int(0.95 * (len(column) - 1))], "all": column}
        for name, column in zip(("click_to_screen_ms", "click_to_settled_ms"), zip(*took, strict=True), strict=True)
    }


# How many of all values on the canvas are clipped, and how bright it is.
LOOK = """() => {
  const canvas = document.querySelector('.gj-canvas');
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let n = 0, bad = 0, sum = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) for (let k = 0; k < 3; k++) {
    n += 1; sum += data[i + k]; bad += data[i + k] === 0 || data[i + k] === 255;
  }
  return { clipped: bad / n, brightness: sum / n / 255 };
}"""


def long_run(studio: Studio, server: Server, minutes: float, arrival: dict) -> dict:
    """Memory and the pictures' own figures: at arrival, and then once per minute."""
    rows = [{"minute": 0} | arrival]
    for minute in range(int(minutes)):
        time.sleep(60)
        studio.until("() => window.gibbsJem.store.playing && window.gibbsJem.store.status === 'running'")
        rows.append({"minute": minute + 1} | look(studio, server))
    return {"rows": rows}


def look(studio: Studio, server: Server) -> dict:
    return {"megabytes": server.megabytes()} | studio.page.evaluate(LOOK)


def beyond(figures: dict) -> list[str]:
    """What does not keep to its limit, in words."""

    def value(path: tuple[str, ...]) -> float:
        found = figures
        for key in path:
            found = found[key]
        return found

    slow = [f"{' '.join(path)} is {value(path):.4g}, at most {most}" for path, most in AT_MOST if value(path) > most]
    few = [
        f"{' '.join(path)} is {value(path):.4g}, at least {least}" for path, least in AT_LEAST if value(path) < least
    ]
    return slow + few


def seconds_to_rest(server: Server) -> float:
    """How long after now the server goes on computing: until a tenth of a second uses next to no processor."""
    began = time.monotonic()
    while time.monotonic() - began < 20:
        before = server.cpu_seconds()
        time.sleep(0.1)
        if server.cpu_seconds() - before < 0.02:
            return time.monotonic() - began - 0.1
    return float("inf")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", default=[], help="a model directory besides the bundled ones")
    parser.add_argument("--open", help="the model to open the page on (the first)")
    parser.add_argument("--chains", type=int, default=16)
    parser.add_argument("--threads", type=int, default=max(1, os.cpu_count() - 1))
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--toggles", type=int, default=15)
    parser.add_argument("--minutes", type=float, default=0, help="that pictures keep moving (0)")
    parser.add_argument("--check", action="store_true", help="fail where a figure is beyond its limit")
    args = parser.parse_args()
    figures = measure(args)
    print(json.dumps(figures, indent=1, default=float))
    found = beyond(figures) if args.check else []
    for one in found:
        print(one, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
