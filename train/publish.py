"""Put a model on the Hugging Face Hub: python -m train publish DIR owner/name [--push] [--private]."""

import argparse
import json
import re
from pathlib import Path

from jem_core.bundle import Bundle, file_facts
from jem_core.hub import CONFIG, CONFIG_BYTES, PREFIX, SUFFIXES, check_list

CARD, EVALUATION = "README.md", "evaluation.json"
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, help="a model directory with its evaluation and its card")
    parser.add_argument("repository", help="owner/name on the Hub")
    parser.add_argument("--push", action="store_true", help="send it; without this, only what would go is shown")
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--message", default="Publish the model", help="of the commit")


def run(args: argparse.Namespace) -> int:
    if not REPOSITORY.fullmatch(args.repository) or ".." in args.repository:
        raise ValueError(f"The repository is {args.repository!r}; expected owner/name, as the Hub spells it.")
    files = gather(args.directory)
    show(files, args)
    if not args.push:
        print("Nothing was sent: this is what would go. Add --push to send it.")
        return 0
    commit = push(files, args.repository, args.private, args.message)
    print(f"Published. To load exactly this: {PREFIX}{args.repository}@{commit}")
    return 0


def gather(directory: Path) -> dict[str, bytes]:
    """What goes to the Hub, by name: a model that loads, its evaluation, its card and its pictures.

    The config that goes lists size and hash of every file that a reader uses. The card is left out of that list: it
    is only read by people, and correcting a word on its page must not make the model unreadable.
    """
    for name, command in ((EVALUATION, "evaluate"), (CARD, "card")):
        if not (directory / name).is_file() or not (directory / name).read_text().strip():
            raise ValueError(f"{directory} has no {name}; it goes nowhere without: python -m train {command} makes it.")
    config = Bundle.read(directory).config
    paths = sorted(path for path in directory.iterdir() if path.name.endswith(SUFFIXES) and not path.is_dir())
    paths = [path for path in paths if path.name != CONFIG and not path.name.startswith(".")]
    config = config | {"files": {path.name: file_facts(path) for path in paths if path.name != CARD}}
    check_list(config["files"])
    text = json.dumps(config, indent=1, ensure_ascii=False).encode()
    if len(text) > CONFIG_BYTES:
        raise ValueError(f"{directory / CONFIG} has {len(text):,} bytes; at most {CONFIG_BYTES:,} are fetched.")
    return {CONFIG: text} | {path.name: path.read_bytes() for path in paths}


def show(files: dict[str, bytes], args: argparse.Namespace) -> None:
    print(f"{args.directory} to {args.repository} on the Hub:")
    for name, data in files.items():
        print(f"  {name:<24}{len(data):>14,} bytes")
    print(f"  {len(files)} files{sum(map(len, files.values())):>31,} bytes")
    left = sorted(path.name for path in args.directory.iterdir() if path.name not in files)
    if left:
        print(f"  stays here: {', '.join(left)}")


def push(files: dict[str, bytes], repository: str, private: bool, message: str) -> str:
    """Send all files in one commit, and give its id."""
    import httpx2  # the HTTP client of huggingface_hub
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.errors import HfHubHTTPError

    api = HfApi()
    additions = [CommitOperationAdd(name, data) for name, data in files.items()]
    try:
        api.create_repo(repository, private=private, exist_ok=True)
        return api.create_commit(repository, additions, commit_message=message).oid
    except HfHubHTTPError as error:
        if error.response.status_code in (401, 403):
            raise ValueError(f"The Hub does not let you write to {repository}: log in with `hf auth login`.") from error
        raise ValueError(f"The Hub refused {repository}: {' '.join(str(error).split())[:200]}.") from error
    except (httpx2.HTTPError, OSError) as error:
        raise ValueError(f"The Hub cannot be reached, nothing was published ({error}).") from error
