"""What a request for an event must be: one that exists, with as many values as it takes."""

from __future__ import annotations

import inspect

import gradio as gr
import orjson
from gradio.block_function import BlockFunction

from app.bodies import Refused
from app.inbox import unwrap
from app.settings import short

PICTURES = ("show", "predict", "edit")  # events whose values may hold a picture
# The marks by which Gradio knows a path or an address that it is to look at, or to fetch. No text can hold the second:
# its quotation marks would be escaped.
FILES = (b"gradio.FileData", b'"path":"')
BODY_HEADERS = (b"content-length", b"content-type", b"transfer-encoding", b"content-encoding")
NO_EVENT = "There is no such event."


def takes_picture(name: str | None) -> bool:
    return name in PICTURES


def parse(body: bytes) -> dict:
    """Names with values; what Gradio could not take, or not repeat, is refused here."""
    try:
        values = orjson.loads(body)
        strict = orjson.dumps(values)  # it reads deeper than it writes
    except orjson.JSONDecodeError:
        raise Refused(400, "The request is not JSON.") from None
    except orjson.JSONEncodeError:
        raise Refused(400, "The request is nested too deeply.") from None
    if not isinstance(values, dict):
        raise Refused(400, f"The request is a {type(values).__name__}; expected names with values.")
    if any(mark in strict for mark in FILES):
        values = unwrap(values)
        strict = orjson.dumps(values)
    if any(mark in strict for mark in FILES):
        raise Refused(400, "No file and no address is opened here; send a picture's bytes.")
    return values


def find(blocks: gr.Blocks, name: str | None, kind: str | None, values: dict) -> BlockFunction:
    """The event that a request is for: by its number, or by its name where a program calls it."""
    index = values.get("fn_index")
    if kind in ("call", "call/v2") or index is None:
        event = next((fn for fn in blocks.fns.values() if name and fn.api_name == name), None)
        if event is not None and kind == "call/v2" and event.api_visibility != "public":
            event = None
    else:
        event = blocks.fns.get(index) if type(index) is int else None
    if event is None:
        raise Refused(400, NO_EVENT)
    return event


def check_data(event: BlockFunction, values: dict, by_name: bool) -> None:
    data = values.get("data")
    takes = (len(event.inputs), sum(not block.skip_api for block in event.inputs) if by_name else -1)
    if not isinstance(data, list) or len(data) not in takes:
        raise Refused(400, f"data is {short(data)}; expected a list of {len(event.inputs)} values.")


def in_order(event: BlockFunction, values: dict) -> list:
    """The values of a documented endpoint, which takes them by name."""
    # What Gradio itself fills in, such as the request, comes after them.
    parameters = list(inspect.signature(event.fn).parameters.values())[: len(event.inputs)]
    unknown = [name for name in values if name not in [one.name for one in parameters]]
    missing = [one.name for one in parameters if one.default is one.empty and one.name not in values]
    if unknown or missing:
        raise Refused(400, f"{short((unknown or missing)[0])} is {'not known here' if unknown else 'missing'}.")
    return [values.get(one.name, one.default) for one in parameters]
