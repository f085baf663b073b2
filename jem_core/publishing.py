"""A model directory on its way to the Hugging Face Hub: what goes, and how it is sent."""

from __future__ import annotations

import json
import re
from pathlib import Path

from jem_core.bundle import Bundle, file_facts
from jem_core.hub import CONFIG, CONFIG_BYTES, SUFFIXES, check_list

CARD, EVALUATION = "README.md", "evaluation.json"
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
MESSAGE = "Publish the model"


def check_repository(name: str) -> None:
    if not REPOSITORY.fullmatch(name) or ".." in name:
        raise ValueError(f"The repository is {name!r}; expected owner/name, as the Hub spells it.")


def gather(directory: Path) -> dict[str, bytes]:
    """What is sent to the Hub, by name: a model that loads, its evaluation, its card and its pictures.

    The config that is sent lists the size and hash of every file that a reader uses. The card is left out of that list:
    it is only read by people, and correcting a word on its page must not make the model unreadable.
    """
    for name, command in ((EVALUATION, "evaluate"), (CARD, "card")):
        if not (directory / name).is_file() or not (directory / name).read_text().strip():
            raise ValueError(
                f"{directory} has no {name}; a model is never published without it: run `python -m train {command}`."
            )
    config = Bundle.read(directory).config
    paths = sorted(path for path in directory.iterdir() if path.name.endswith(SUFFIXES) and not path.is_dir())
    paths = [path for path in paths if path.name != CONFIG and not path.name.startswith(".")]
    config = config | {"files": {path.name: file_facts(path) for path in paths if path.name != CARD}}
    check_list(config["files"])
    text = json.dumps(config, indent=1, ensure_ascii=False).encode()
    if len(text) > CONFIG_BYTES:
        raise ValueError(f"{directory / CONFIG} has {len(text):,} bytes; at most {CONFIG_BYTES:,} are fetched.")
    return {CONFIG: text} | {path.name: path.read_bytes() for path in paths}


def push(files: dict[str, bytes], repository: str, private: bool = False, message: str = MESSAGE) -> str:
    """Send all files in one commit, and give its id."""
    import httpx2  # the HTTP client of huggingface_hub
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.errors import HfHubHTTPError

    check_repository(repository)
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
        raise ValueError(f"The Hub cannot be reached, so nothing was published ({error}).") from error
