"""Files that a program sends before it calls an endpoint: what `gradio_client.handle_file` does with a picture.

Gradio would write them to its disk and open them by their path. Here one small picture per request becomes a parcel in
memory (app.parcels): its name goes back as the path, stands in the call, and is all that Gradio ever sees. No path and
no address is opened.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers

from app.bodies import Refused
from app.parcels import PREFIX

UPLOAD = re.compile(r"/gradio_api/upload/?")
BOUNDARY = re.compile(r"multipart/form-data;\s*boundary=\"?([\w'()+,./:=?-]{1,70})\"?", re.ASCII)
LONGEST_HEAD = 1_000  # bytes: a part's own headers
SIGNS = (b"\xff\xd8\xff", b"\x89PNG", b"RIFF")  # how JPEG, PNG and WebP begin
UNSUPPORTED = "Unsupported file. Use JPEG, PNG or WebP."


def is_picture(data: bytes) -> bool:
    """Whether a file begins as one of the three kinds that are decoded."""
    return data.startswith(SIGNS) and (data[:4] != b"RIFF" or data[8:12] == b"WEBP")


def only_file(body: bytes, headers: Headers) -> bytes:
    """The one file of a form, a picture by its first bytes; Refused for anything else."""
    found = BOUNDARY.match(headers.get("content-type", ""))
    if found is None:
        raise Refused(400, "An upload is a form with one file.")
    mark = b"--" + found[1].encode()
    head = body.find(b"\r\n\r\n", 0, LONGEST_HEAD)
    end = body.rfind(b"\r\n" + mark + b"--")
    if not body.startswith(mark) or head < 0 or end < head or body.count(b"\r\n" + mark) != 1:
        raise Refused(400, "An upload is a form with one file.")
    data = body[head + 4 : end]
    if not is_picture(data):
        raise Refused(415, UNSUPPORTED)
    return data


def unwrap(values: dict) -> dict:
    """The values of a call, in which a file that was handed in here is no longer a file but the name of its parcel."""
    if isinstance(values.get("data"), list):
        return values | {"data": [_unwrapped(value) for value in values["data"]]}
    return {name: _unwrapped(value) for name, value in values.items()}


def _unwrapped(value: object) -> object:
    path = value.get("path") if isinstance(value, dict) and "meta" in value else None
    return path if isinstance(path, str) and path.startswith(PREFIX) else value
