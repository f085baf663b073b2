"""Put a model on the Hugging Face Hub: python -m train publish DIR owner/name [--push] [--private]."""

import argparse
from pathlib import Path

from jem_core.hub import PREFIX
from jem_core.publishing import MESSAGE, check_repository, gather, push


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, help="a model directory with its evaluation and its card")
    parser.add_argument("repository", help="owner/name on the Hub")
    parser.add_argument("--push", action="store_true", help="send it; without this, only what would go is shown")
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--message", default=MESSAGE, help="of the commit")


def run(args: argparse.Namespace) -> int:
    check_repository(args.repository)
    files = gather(args.directory)
    show(files, args)
    if not args.push:
        print("Nothing was sent: this is what would go. Add --push to send it.")
        return 0
    commit = push(files, args.repository, args.private, args.message)
    print(f"Published. To load exactly this: {PREFIX}{args.repository}@{commit}")
    return 0


def show(files: dict[str, bytes], args: argparse.Namespace) -> None:
    print(f"{args.directory} to {args.repository} on the Hub:")
    for name, data in files.items():
        print(f"  {name:<24}{len(data):>14,} bytes")
    print(f"  {len(files)} files{sum(map(len, files.values())):>31,} bytes")
    left = sorted(path.name for path in args.directory.iterdir() if path.name not in files)
    if left:
        print(f"  stays here: {', '.join(left)}")
