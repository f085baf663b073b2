"""The command `gibbs-jem`: alone it opens the app, `gibbs-jem train` is the command line of `train`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

NAME = "gibbs-jem"
MORE = f"To train, sample, measure and share models: {NAME} train COMMAND; {NAME} train --help lists the commands."


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["train"]:
        from train.__main__ import main as train

        return train(words[1:], f"{NAME} train")
    from app.shell import build, launch, options

    chosen = options(words, NAME, MORE)
    try:
        demo = build(chosen)
    except ValueError as error:  # no model, or a bad one: a sentence says which
        print(f"{NAME}: {error}", file=sys.stderr)
        return 2
    launch(demo, chosen)
    return 0
