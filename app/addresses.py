"""Where a request comes from. What it says of itself is not believed, unless a proxy in front of this server says it.

`behind_proxy` in app.limits turns that on; `python -m train space` does. A proxy adds the caller's address at the end
of X-Forwarded-For, where no caller can change it.
"""

from __future__ import annotations

import ipaddress
import os
import re

from starlette.types import ASGIApp, Receive, Scope, Send

FORWARDED = (b"forwarded", b"x-forwarded-", b"x-real-ip", b"x-original-", b"x-gradio-server")
HOST = re.compile(rb"([A-Za-z0-9._-]{1,200}|\[[0-9A-Fa-f:.]{2,60}\])(:[0-9]{1,5})?")
PROTOCOL, FOR = b"x-forwarded-proto", b"x-forwarded-for"
os.environ["FORWARDED_ALLOW_IPS"] = ""  # or uvicorn believes whatever a program on this machine says
NETWORK = 64  # bits of an IPv6 address that stand for one subscriber


def address_of(scope: Scope, behind_proxy: bool) -> str:
    """One name for one household: an IPv4 address, or an IPv6 network."""
    peer = scope["client"][0] if scope.get("client") else ""
    if behind_proxy:
        stated = b",".join(value for name, value in scope["headers"] if name == FOR).decode("latin-1")
        listed = [found for part in stated.split(",") if (found := _parse(part.strip()))]
        # Proxies inside a data centre add their own addresses, which are not public, behind the caller's.
        public = [one for one in listed if one.is_global]
        if listed:
            return _household((public or listed)[-1])
    found = _parse(peer)
    return _household(found) if found else peer


def believable(scope: Scope, behind_proxy: bool) -> list[tuple[bytes, bytes]]:
    """The headers without what only a proxy may say; behind one its protocol stays. X-Forwarded-Host never does:
    Gradio would build its links from it. A host that makes no sense is an empty one: Gradio would end in an error."""
    return [
        (name, b"" if name == b"host" and not HOST.fullmatch(value) else value)
        for name, value in scope["headers"]
        if not name.startswith(FORWARDED) or (behind_proxy and name == PROTOCOL and value in (b"http", b"https"))
    ]


def with_host(app: ASGIApp) -> ASGIApp:
    """An app whose requests all say a host, if only an empty one: HTTP/1.0 need not, and Gradio, which looks at it
    before anything of ours is asked, ends in an error."""

    async def named(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and all(name != b"host" for name, _ in scope["headers"]):
            scope = scope | {"headers": [*scope["headers"], (b"host", b"")]}
        await app(scope, receive, send)

    return named


def _parse(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _household(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, NETWORK), strict=False))
