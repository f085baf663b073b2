"""What an endpoint says of its parameters: name, meaning, range and default, for the API page, clients and MCP tools.

Sampling settings are described by jem_core's own table. A bad value is refused under the name that the caller wrote.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import gradio as gr

from app.gradio_inside import describe, event_for
from app.runtime import current
from app.settings import short
from jem_core.bundle import Bundle
from jem_core.settings import BY_KEY, Setting

MODEL = "name of a model; the default is the first one, or for a picture the one that suits it"
SEED = "the same seed gives the same pictures; from 0 to 2147483647"
REQUIRED = 'attributes that pictures must have, such as ["Eyeglasses", "Smiling"]'
EXCLUDED = "attributes that pictures must not have; the default is none"
IMAGE = (
    'a JPEG, PNG or WebP picture: handle_file("me.jpg") in a client, or its bytes in base64, or a data URI; '
    "nothing of it is kept"
)
FACE = "which face of a photograph: 1 is the largest"


def sampling(key: str) -> str:
    """A row of jem_core's table in words."""
    return f"{BY_KEY[key].meaning}; {_range(BY_KEY[key])}; the default is the model's own"


def _range(setting: Setting) -> str:
    if setting.kind == "choice":
        return f"one of {', '.join(choice for choice in setting.choices if choice != 'images')}"
    return f"{'a whole number ' if setting.kind == 'whole' else ''}from {setting.low:g} to {setting.high:g}"


def endpoint(function: Callable, parameters: Mapping[str, str], returns: str, **options: object) -> None:
    """Offer a function under its own name; every parameter must be described."""
    names = list(inspect.signature(function).parameters)
    if names != list(parameters):
        raise ValueError(f"{function.__name__} takes {names}; described are {list(parameters)}.")
    about = inspect.getdoc(function).split("\n\nArgs:")[0]
    listed = "\n".join(f"    {name}: {text}." for name, text in parameters.items())
    function.__doc__ = f"{about}\n\nArgs:\n{listed}\n\nReturns:\n    {returns}\n"
    gr.api(function, api_name=function.__name__, **options)
    event = event_for(function)
    examples = _examples()
    for component, (name, text) in zip(event.inputs, parameters.items(), strict=True):
        component.label = name
        if name in examples:
            component.example_payload = lambda example=examples[name]: example
        describe(component, additional_description=f"{text[:1].upper()}{text[1:]}.")
    event.outputs[0].label = "answer"
    describe(event.outputs[0], type="object", additionalProperties=True, description=f"{returns}.")


def _examples() -> dict[str, object]:
    """Values for the snippets of the API page that the first model understands."""
    attribute = next(iter(current().catalog.attributes().values()))[0]
    return {"required": [attribute], "walk": f"{attribute}; -{attribute}", "image": "data:image/png;base64,..."}


@contextmanager
def refusing() -> Iterator[None]:
    """A bad value becomes an error that a client shows, and no trace in the log."""
    try:
        yield
    except ValueError as error:
        raise gr.Error(str(error), print_exception=False) from error


@contextmanager
def named(parameter: str) -> Iterator[None]:
    """What is wrong inside is wrong with this parameter."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{parameter}: {error}") from error


def whole(parameter: str, value: object, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"{parameter} is {short(value)}; expected a whole number from {low} to {high}.")
    return value


def number(parameter: str, value: object, low: float, high: float) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high  # nan is in no range
    if not good:
        raise ValueError(f"{parameter} is {short(value)}; expected a number from {low:g} to {high:g}.")
    return float(value)


def choice(parameter: str, value: object, choices: Iterable[str]) -> str:
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{parameter} is {short(value)}; choose one of {', '.join(choices)}.")
    return value


def listed(parameter: str, value: object) -> list[str]:
    """A list of attribute names; whether the model knows them is for Condition to say."""
    value = [] if value is None else value
    if not isinstance(value, list) or len(value) > 200 or not all(isinstance(v, str) and len(v) <= 200 for v in value):
        raise ValueError(f"{parameter} is {short(value)}; expected a list of attribute names.")
    return value


def given(bundle: Bundle, **settings: object) -> dict:
    """The sampling settings that a caller gave, as the model itself checks them."""
    found = {key: value for key, value in settings.items() if value is not None}
    for key, value in found.items():
        # The model's own sentence quotes a value as it is.
        if not isinstance(value, str | int | float) or short(value).endswith("..."):
            raise ValueError(f"{key} is {short(value)}; expected {_range(BY_KEY[key])}.")
    checked = bundle.sampling_with(found)
    return {key: checked[key] for key in found}
