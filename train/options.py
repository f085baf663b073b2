"""Command-line options for the sampling settings, made from their one table."""

from __future__ import annotations

import argparse

from jem_core.settings import TABLE, parse_setting


def add_settings(parser: argparse.ArgumentParser) -> None:
    """One option per setting; what is not given is the model's own."""
    group = parser.add_argument_group("sampling settings", "what is not given is the model's own")
    for setting in TABLE:
        choices = [choice for choice in setting.choices if choice != "images"] or None
        span = "" if choices else f" ({setting.low:g} to {setting.high:g})"
        group.add_argument(
            option(setting.key), dest=setting.key, choices=choices, help=f"{setting.meaning}{span}".replace("%", "%%")
        )


def option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def given_settings(args: argparse.Namespace) -> dict:
    """The settings that were given, as values; whether they suit the model, the model says."""
    words = {setting.key: getattr(args, setting.key) for setting in TABLE}
    return {key: parse_setting(key, text) for key, text in words.items() if text is not None}
