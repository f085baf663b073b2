"""The command line: python -m train COMMAND; every command is one module of this package."""

import argparse
import ast
import contextlib
import ctypes
import importlib
import sys
from pathlib import Path

COMMANDS = (
    "data",
    "judge",
    "fit",
    "export",
    "evaluate",
    "card",
    "results",
    "sample",
    "steer",
    "predict",
    "publish",
    "space",
    "bench",
)
# glibc's numbers for the size from which a block is the system's own, and for how much free memory is given back.
M_MMAP_THRESHOLD, M_TRIM_THRESHOLD = -3, -1
LARGEST, NEVER = 2**25, 2**30  # the first is the most that every glibc takes


def main(arguments: list[str] | None = None, prog: str = "python -m train") -> int:
    parser = argparse.ArgumentParser(prog=prog, description="Train, judge and share joint energy-based models.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    named = (arguments if arguments is not None else sys.argv[1:])[:1]
    for name in COMMANDS:
        command = commands.add_parser(name, help=about(name), description=about(name), allow_abbrev=False)
        if named == [name]:  # import only the module that runs: some need packages that others do not
            module = importlib.import_module(f"train.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run, takes_overrides=getattr(module, "TAKES_OVERRIDES", False))
    args, overrides = parser.parse_known_args(arguments)
    if overrides and not args.takes_overrides:
        parser.error(f"{args.command} does not take {' '.join(overrides)}")
    args.overrides = overrides
    keep_memory()
    try:
        return args.run(args)
    except (ValueError, FileNotFoundError) as error:
        print(f"{parser.prog} {args.command}: {error}", file=sys.stderr)
        return 2


def keep_memory() -> None:
    """Let glibc keep what is freed: iterations ask for the same memory again, and new pages cost a twelfth of them."""
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        for setting, value in ((M_MMAP_THRESHOLD, LARGEST), (M_TRIM_THRESHOLD, NEVER)):
            ctypes.CDLL(None).mallopt(setting, value)


def about(name: str) -> str:
    """What a command does, from its module's first line, which also shows a call: argparse has a better one."""
    text = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    line = str(ast.get_docstring(ast.parse(text))).splitlines()[0]
    return line.partition(": python -m train")[0].rstrip(".").replace("%", "%%") + "."


if __name__ == "__main__":
    sys.exit(main())
