"""Time the photo screen in a real browser: python tests/e2e/measure_photo.py [--uploads 7] [--check].

For each bundled model with noise levels: seconds from sending a file, a picture that is for this model, until the
answers, their reliability and the gate are on the screen; the picture chooses the model. Reports the medians as one
JSON object; with --check, ends with 1 where one is above the limit, which is meant for two idle cores.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pictures
from playwright.sync_api import Page, sync_playwright
from serve import FLAGS, start_server, stop_server

MOST_SECONDS = 1.5
READY = "() => window.gibbsJem?.photoScreen?.models.length > 0"
NEWLY_DRAWN = "(before) => window.gibbsJem.photoScreen.drawn > before"
# When the answer is drawn: the rows, the sentence and the gate. The plot comes in the same answer and is drawn next.
TOOK = "() => { const { sent, drawn, reply } = window.gibbsJem.photoScreen; return [drawn - sent, reply.model]; }"
PLOT = "#gj-photo-plot .js-plotly-plot .main-svg"


def upload(page: Page, file: Path) -> tuple[float, str]:
    """Seconds, and the model that was chosen."""
    before = page.evaluate("() => window.gibbsJem.photoScreen.drawn ?? 0")
    page.set_input_files("[data-photo=file]", file)
    page.wait_for_function(NEWLY_DRAWN, arg=before)
    page.wait_for_selector(PLOT)
    milliseconds, model = page.evaluate(TOOK)
    return milliseconds / 1000, model


def files_in(folder: Path) -> dict[str, Path]:
    """By model, a file that is for it."""
    found = {"celeba": pictures.PORTRAIT, "avatars": folder / "avatar.png", "shoes": folder / "shoe.png"}
    pictures.avatar().save(found["avatars"])
    pictures.shoe().save(found["shoes"])
    return found


def measure(url: str, folder: Path, uploads: int) -> dict[str, dict]:
    report = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{url}/?screen=photo")
        page.wait_for_function(READY)
        for name, file in files_in(folder).items():
            took, models = zip(*(upload(page, file) for _ in range(uploads)), strict=True)
            if set(models) != {name}:
                raise RuntimeError(f"{file.name} went to {', '.join(set(models))}; expected {name}.")
            report[name] = {
                "median_seconds": round(statistics.median(took), 2),
                "seconds": [round(value, 2) for value in took],
            }
        browser.close()
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--uploads", type=int, default=7, help="of each picture (default %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of the server (default %(default)s)")
    parser.add_argument("--check", action="store_true", help=f"end with 1 where a median is above {MOST_SECONDS} s")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = start_server(folder / "log.txt", [], OMP_NUM_THREADS=str(args.threads))
        try:
            report = measure(server.url, folder, args.uploads)
        finally:
            stop_server(server)
    slow = [model for model, facts in report.items() if facts["median_seconds"] > MOST_SECONDS]
    print(json.dumps({"limit_seconds": MOST_SECONDS, "models": report, "above": slow}, indent=1))
    return 1 if args.check and slow else 0


if __name__ == "__main__":
    sys.exit(main())
