"""A visitor of the first screen, for the browser tests: what a person does and sees, in a few words."""

from __future__ import annotations

import os
import re
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import ConsoleMessage, Error, Page, Request

PATIENCE = int(os.environ.get("GIBBS_JEM_PATIENCE", "180000"))  # milliseconds: the machine may be busy
HASH = """async () => {
  const canvas = document.querySelector('.gj-canvas');
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const digest = await crypto.subtle.digest('SHA-256', data);
  return [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, '0')).join('');
}"""
PICTURE = """async (chain) => {
  const lane = window.gibbsJem.shown().lanes[0], image = new Image();
  image.src = lane.src;
  await image.decode();
  const canvas = document.createElement('canvas'), { size, columns } = lane;
  canvas.width = canvas.height = size;
  const context = canvas.getContext('2d');
  context.drawImage(image, -(chain % columns) * size, -Math.floor(chain / columns) * size);
  return context.getImageData(0, 0, size, size).data.join();
}"""


class Studio:
    """One open page. It collects console errors and requests that would leave the machine."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.errors: list[str] = []
        self.strangers: list[str] = []
        page.set_default_timeout(PATIENCE)
        self._listen()

    def _listen(self) -> None:
        self._heard = {"console": self._console, "pageerror": self._error, "request": self._request}
        for event, hear in self._heard.items():
            self.page.on(event, hear)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _error(self, error: Error) -> None:
        self.errors.append(str(error))

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != urlsplit(self.url).netloc:
            self.strangers.append(request.url)

    def open(self, address: str = "", **settings: object) -> Studio:
        """Visit with these settings in the address and wait for the first picture."""
        query = urlencode({key: ",".join(v) if isinstance(v, list) else v for key, v in settings.items()})
        self.page.goto(address or f"{self.url}/?{query}")
        self.until("() => window.gibbsJem?.counters?.frames > 0")
        return self

    def until(self, script: str, argument: object = None) -> None:
        self.page.wait_for_function(script, arg=argument, timeout=PATIENCE)

    def text(self, selector: str) -> str:
        """What stands there, on the first screen: other screens have parts of the same kind."""
        return self.page.locator(f"#gj-studio {selector}").inner_text()

    def store(self, key: str) -> object:
        return self.page.evaluate("(key) => window.gibbsJem.store[key]", key)

    def setting(self, key: str) -> object:
        return self.page.evaluate("(key) => window.gibbsJem.store.settings[key]", key)

    @property
    def step(self) -> int:
        """The step that the page says it shows."""
        return int(re.sub(r"\D", "", self.text(".gj-step")) or 0)

    @property
    def state(self) -> str:
        return self.text(".gj-state")

    @property
    def digest(self) -> str | None:
        """Of the chains themselves, from the server, when they stand still."""
        return self.page.locator(".gj-canvas").get_attribute("data-digest")

    def pixels(self) -> str:
        """A hash of what is really on the canvas."""
        return self.page.evaluate(HASH)

    def press(self, what: str) -> None:
        """A button by what it does; the small copy of the grid on a phone has a main button too."""
        self.page.locator(f"#gj-studio .gj-main [data-do={what}]").click()

    def fold_out(self, panel: str) -> None:
        """Open a folded panel."""
        box = self.page.locator(f"#gj-studio {panel}")
        if not box.evaluate("(node) => node.open"):
            box.locator("> summary").click()

    def tile(self, chain: int):
        return self.page.locator(f".gj-tile[data-lane='0'][data-chain='{chain}']")

    def picture(self, chain: int) -> str:
        """The pixels of one picture of the grid as the server sent them, exact when the chains stand still."""
        return self.page.evaluate(PICTURE, chain)

    def chip(self, name: str):
        return self.page.locator(f".gj-chip[data-name={name}]")

    def wait_state(self, state: str) -> None:
        self.until("(state) => document.querySelector('.gj-state')?.textContent === state", state)

    def wait_step(self, step: int) -> None:
        self.until("(step) => window.gibbsJem.counters.shownStep >= step", step)

    def still(self) -> None:
        """Wait until the chains stand and their exact picture is on the canvas."""
        self.until(
            "() => { const c = document.querySelector('.gj-canvas');"
            " return c?.dataset.digest && Number(c.dataset.step) === window.gibbsJem.counters.shownStep; }"
        )

    def pause(self) -> None:
        if self.store("playing"):
            self.press("main")
        self.until("() => !window.gibbsJem.store.playing")
        self.still()

    def settle(self) -> Studio:
        """Wait until the pictures have arrived and stand on the canvas."""
        self.until("() => window.gibbsJem?.store?.status === 'settled' && !window.gibbsJem.store.playing")
        self.still()
        return self

    def toggle(self, name: str) -> None:
        """Click a chip and wait for what comes of it."""
        order = self.store("order")
        self.chip(name).click()
        self.until("(order) => window.gibbsJem.counters.shownOrder > order", order)
        self.settle()

    def act(self, what: str) -> None:
        """Press a button that computes and ends by itself."""
        before = self.store("run")
        self.press(what)
        self.until(
            "(before) => { const { store, counters } = window.gibbsJem;"
            " return store.run !== before && counters.shownRun === store.run && !store.playing; }",
            before,
        )
        self.still()

    def choose(self, key: str, value: str) -> None:
        """Set a field of the folded panels."""
        field = self.page.locator(f"#gj-studio [data-key={key}]")
        panel = self.page.locator("#gj-studio details", has=self.page.locator(f"[data-key={key}]"))
        if not panel.evaluate("(node) => node.open"):
            panel.locator("> summary").click()
        if field.evaluate("(node) => node.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
            field.press("Tab")

    def forget(self) -> None:
        """Remember nothing of earlier visits."""
        browser = self.page.context.new_cdp_session(self.page)
        browser.send("Storage.clearDataForOrigin", {"origin": self.url, "storageTypes": "all"})
        browser.detach()

    def leave(self) -> None:
        """Close the app, which breaks off what it was waiting for; the empty page is for the next visitor."""
        for event, hear in self._heard.items():
            self.page.remove_listener(event, hear)
        self._heard = {}
        self.page.goto("about:blank")

    def reload(self) -> None:
        """Go and come again, to the same address."""
        url = self.page.url
        self.leave()
        self._listen()
        self.page.goto(url)

    def clean(self) -> None:
        """Nothing went wrong on the page, and nothing left the machine."""
        assert not self.errors, f"the page complained: {self.errors}"
        assert self.strangers == []
