"""Pictures of every screen in a real browser: python tests/e2e/take_screenshots.py --out DIR [--seconds 2].

Three window sizes, light and dark, on the bundled models: to be looked at, and for the README.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from playwright.sync_api import Browser, Page, sync_playwright
from serve import FLAGS, ROOT, start_server, stop_server

SIZES = {"desk": (1440, 900), "tablet": (1024, 768), "phone": (390, 844)}
EXAMPLE = ROOT / "assets" / "examples" / "astronaut.jpg"


def studio(page: Page, url: str, theme: str, seconds: float) -> None:
    page.goto(f"{url}/?__theme={theme}")
    page.wait_for_function("() => window.gibbsJem?.store?.status === 'settled'", timeout=120_000)
    page.wait_for_timeout(1000 * seconds)


def photo(page: Page, url: str, theme: str, seconds: float) -> None:
    page.goto(f"{url}/?__theme={theme}&screen=photo")
    page.wait_for_function("() => window.gibbsJem?.photoScreen?.models.length > 0")
    page.set_input_files("[data-photo=file]", EXAMPLE)
    page.wait_for_selector("#gj-photo-plot .js-plotly-plot .main-svg", state="attached")  # a phone shows it on a tap
    page.wait_for_timeout(1500)


def compare(page: Page, url: str, theme: str, seconds: float) -> None:
    page.goto(f"{url}/?__theme={theme}&screen=compare")
    page.wait_for_selector("#gj-screen-compare .js-plotly-plot .main-svg", state="attached")
    page.wait_for_timeout(3000)


SCREENS = {"studio": studio, "photo": photo, "compare": compare}


def take(browser: Browser, url: str, out: Path, seconds: float) -> None:
    for size, (width, height) in SIZES.items():
        for theme in ("light", "dark"):
            for name, open_screen in SCREENS.items():
                page = browser.new_page(viewport={"width": width, "height": height})
                page.add_init_script("localStorage.setItem('gibbs-jem-hints', 'seen')")
                open_screen(page, url, theme, seconds)
                page.screenshot(path=out / f"{name}-{size}-{theme}.png")
                if name != "studio":
                    page.screenshot(path=out / f"{name}-{size}-{theme}-full.png", full_page=True)
                page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=2.0, help="after the pictures have arrived (2)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        server = start_server(Path(folder) / "log.txt", [])
        try:
            take(browser, server.url, args.out, args.seconds)
        finally:
            stop_server(server)
            browser.close()


if __name__ == "__main__":
    main()
