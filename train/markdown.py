"""Tables and figures as Markdown writes them."""

from __future__ import annotations


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def between(entry: dict) -> str:
    """A value with its interval."""
    if entry.get("low") is None:
        return percent(entry["value"])
    return f"{percent(entry['value'])} ({100 * entry['low']:.1f} to {100 * entry['high']:.1f})"


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
