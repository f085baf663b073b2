"""What every answer says to the browser about safety."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

# Gradio's page needs scripts that stand in the page and scripts that are made of text; its styles too. All else comes
# from this server, and goes nowhere else: what a hostile model's words might do, they cannot tell anybody.
CONTENT = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' data: blob:",
    "worker-src": "'self' blob:",
    "media-src": "'self' data: blob:",
    "object-src": "'none'",
    "frame-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'self' https://huggingface.co https://*.hf.space",  # a Space is shown inside the Hub's page
}
SAFETY = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in CONTENT.items()),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), "  # for a picture of oneself
    + ", ".join(f"{name}=()" for name in ("microphone", "geolocation", "payment", "usb", "serial", "display-capture")),
    "Cross-Origin-Opener-Policy": "same-origin-allow-popups",
}


def with_safety(send: Send) -> Send:
    """`send`, with these headers on every answer."""

    async def send_safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SAFETY.items():
                headers.setdefault(name, value)
        await send(message)

    return send_safely
