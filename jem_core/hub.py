"""Models by name: bundled with the program, on the Hugging Face Hub, or in a directory.

`PyTorchModelHubMixin` is not used, although it was made for this: its `from_pretrained` loads with `strict=False`,
falls back to a pickle when there is no safetensors file, and knows one file of weights, where a model of ours is a
directory of files, each checked against the hash in its config. Download, cache and tokens are huggingface_hub's.
"""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import torch

from jem_core.bundle import Bundle, check_file, read_config
from jem_core.places import ASSETS

BUNDLED = ASSETS / "models"
CONFIG, PREFIX = "config.json", "hf-hub:"
HUB_NAME = re.compile(r"hf-hub:(?P<repo>\w[\w.-]*/\w[\w.-]*)(?:@(?P<revision>\w[\w./-]*))?", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")

SUFFIXES = (".safetensors", ".json", ".md", ".png")  # all that is ever fetched: nothing here can run code
CONFIG_BYTES = 100_000
MODEL_BYTES = 1 << 30

ANSWER_SECONDS = 2.5  # how long the Hub may take to answer; the caller hears a result or a sentence within 5 s
SLOWEST_BYTES = 200_000  # per second: a slower transfer counts as broken off (it goes on, and serves the next try)

Progress = Callable[[int, int], None]  # called with the bytes that arrived so far and the bytes of the whole model
Result = TypeVar("Result")
log = logging.getLogger(__name__)


def load(name: str | Path, device: torch.device | str = "cpu", progress: Progress | None = None) -> Bundle:
    """A model by a bundled name ("avatars"), "hf-hub:owner/name@revision" (or without @revision), or a directory."""
    return Bundle.read(locate(name, progress), device)


def bundled_names() -> tuple[str, ...]:
    """The models that came with the program."""
    return tuple(sorted(path.parent.name for path in BUNDLED.glob("*/config.json")))


def locate(name: str | Path, progress: Progress | None = None) -> Path:
    """The model directory that a name stands for; a Hub model is fetched first, unless it is here already."""
    if name in bundled_names():
        return BUNDLED / name
    if match := HUB_NAME.fullmatch(str(name)):
        if ".." not in str(name):
            return fetch(match["repo"], match["revision"] or "main", progress)
    elif not str(name).startswith(PREFIX) and str(name).strip() and Path(name).is_dir():
        return Path(name)
    raise ValueError(
        f"There is no model {str(name)!r}; give a bundled name ({', '.join(bundled_names()) or 'none here'}), "
        "hf-hub:owner/name@revision (or without @revision), or a directory."
    )


def fetch(repo: str, revision: str = "main", progress: Progress | None = None) -> Path:
    """The directory of a Hub model at the commit that the revision names now, every file checked.

    A commit that is in the cache needs no network. When the Hub does not answer, the cache serves what it has.
    """
    if COMMIT.fullmatch(revision) and (cached := find_cached(repo, revision)):
        return cached
    try:
        commit = _commit(repo, revision)
        directory = _download(repo, commit, CONFIG, CONFIG_BYTES, None).parent
        listed = listed_files(directory)
        count = _Count(sum(facts["size"] for facts in listed.values()), progress)
        for name, facts in listed.items():
            _download_checked(repo, commit, name, facts, count)
        if find_cached(repo, revision) != directory:
            # Asking by the revision's name moves the cache's pointer; last, so that a download that breaks off does
            # not displace an older copy that is complete.
            _download(repo, revision, CONFIG, CONFIG_BYTES, None)
        return directory
    except HubUnreachable as error:
        cached = find_cached(repo, revision)
        if cached is None:
            raise HubUnreachable(f"{error}, and the cache holds no good copy.") from error
        log.warning("%s; the copy in the cache serves instead: commit %s.", error, cached.name)
        return cached


def find_cached(repo: str, revision: str) -> Path | None:
    """The directory of a Hub model that is whole and undamaged in the cache; no network is used."""
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(repo, CONFIG, revision=revision)
    if not isinstance(path, str):
        return None
    directory = Path(path).parent
    try:
        for name, facts in listed_files(directory).items():
            check_file(directory / name, facts)
    except ValueError:
        return None
    return directory


def listed_files(directory: Path) -> dict[str, dict]:
    """The files that a config lists, {name: {"size", "sha256"}}."""
    files = read_config(directory)["files"]
    check_list(files)
    return files


def check_list(files: dict[str, dict]) -> None:
    """Refuse a list with a file of a kind that is never fetched, or with more bytes than are."""
    for name, facts in files.items():
        if not re.fullmatch(r"\w[\w.-]*", name, re.ASCII) or not name.endswith(SUFFIXES):
            raise ValueError(f"The model's config.json lists {name!r}; only {', '.join(SUFFIXES)} files are fetched.")
        if not isinstance(facts["size"], int) or facts["size"] < 0:
            raise ValueError(f"The model's config.json gives {facts['size']!r} as the size of {name}.")
    total = sum(facts["size"] for facts in files.values())
    if total > MODEL_BYTES:
        raise ValueError(f"The model's files have {total:,} bytes together; at most {MODEL_BYTES:,} are fetched.")


class HubUnreachable(ValueError):
    """The Hub did not answer, or a transfer broke off."""


class _Count:
    """Adds up what arrives of all files."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.done, self.progress = total, 0, progress

    def add(self, size: int) -> None:
        self.done += size
        if self.progress:
            self.progress(self.done, self.total)


def _commit(repo: str, revision: str) -> str:
    """The commit that a branch, tag or commit id stands for."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    def ask() -> str | None:
        return get_hf_file_metadata(hf_hub_url(repo, CONFIG, revision=revision), timeout=ANSWER_SECONDS).commit_hash

    commit = _in_words(repo, revision, CONFIG, ANSWER_SECONDS + 0.5, ask)
    if commit is None or not COMMIT.fullmatch(commit):
        raise HubUnreachable(f"What answered for {PREFIX}{repo} is not a Hub: it names no commit")
    return commit


def _download_checked(repo: str, commit: str, name: str, facts: dict, count: _Count) -> None:
    """One file of the model, by size and hash the one that its config lists; a damaged copy in the cache is renewed."""
    arrived = count.done
    path = _download(repo, commit, name, facts["size"], count)
    try:
        check_file(path, facts)
    except ValueError:
        if count.done > arrived:
            raise  # it came just now: the Hub itself serves it so
        check_file(_download(repo, commit, name, facts["size"], count, force=True), facts)
    count.add(arrived + facts["size"] - count.done)  # nothing arrives of a file that was in the cache


def _download(repo: str, revision: str, name: str, limit: int, count: _Count | None, force: bool = False) -> Path:
    """One file into the cache of huggingface_hub, refused when it is longer than the limit."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import tqdm

    class Bar(tqdm):
        def __init__(self, *args: Any, total: int | None = None, disable: bool | None = None, **more: Any) -> None:
            _refuse_above(limit, total or 0, name)
            silent = count is None or count.progress is not None
            super().__init__(*args, total=total, disable=True if silent else disable, **more)
            self.received = 0

        def update(self, n: float | None = 1) -> bool | None:
            self.received += int(n or 0)
            _refuse_above(limit, self.received, name)
            if count:
                count.add(int(n or 0))
            return super().update(n)

    def download() -> str:
        return hf_hub_download(
            repo, name, revision=revision, etag_timeout=ANSWER_SECONDS, tqdm_class=Bar, force_download=force
        )

    return Path(_in_words(repo, revision, name, ANSWER_SECONDS + limit / SLOWEST_BYTES, download))


def _refuse_above(limit: int, size: int, name: str) -> None:
    if size > limit:
        raise ValueError(f"The Hub offers {size:,} bytes as {name}; expected at most {limit:,}.")


def _in_words(repo: str, revision: str, name: str, seconds: float, job: Callable[[], Result]) -> Result:
    """Do a job on the Hub in at most so many seconds; what goes wrong is told in one sentence."""
    import httpx2  # the HTTP client of huggingface_hub
    from huggingface_hub import errors

    try:
        return _within(seconds, job)
    except errors.GatedRepoError as error:
        raise ValueError(f"The model {repo} on the Hub is gated: ask its owner for access, then log in.") from error
    except errors.RepositoryNotFoundError as error:
        raise ValueError(f"There is no model {repo!r} on the Hub, or it is private.") from error
    except errors.RevisionNotFoundError as error:
        raise ValueError(f"The model {repo} on the Hub has no revision {revision!r}.") from error
    except errors.RemoteEntryNotFoundError as error:
        raise ValueError(f"The model {repo} on the Hub lacks the file {name}.") from error
    except (httpx2.HTTPError, OSError) as error:
        cause = " ".join(str(error).split())[:200] or type(error).__name__
        raise HubUnreachable(f"The Hub did not deliver {name} of {PREFIX}{repo} ({cause})") from error


def _within(seconds: float, job: Callable[[], Result]) -> Result:
    """The job's result or error, or a TimeoutError.

    HTTP timeouts alone do not bound this: names are resolved outside of them, and the library tries again for 23 s.
    """
    outcome: SimpleQueue = SimpleQueue()

    def work() -> None:
        try:
            outcome.put((job(), None))
        except Exception as error:
            outcome.put((None, error))

    Thread(target=work, daemon=True).start()
    try:
        result, error = outcome.get(timeout=seconds)
    except Empty:
        raise TimeoutError(f"no answer within {seconds:.0f} s") from None
    if error is not None:
        raise error
    return result
