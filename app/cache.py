"""A place that Gradio can write to, found before it is imported: it reads the variable then, and fails without one."""

import logging
import os
import tempfile
from pathlib import Path

VARIABLE = "GRADIO_TEMP_DIR"
log = logging.getLogger("gibbs_jem")


def writable_cache() -> str:
    """The directory that is set; where it cannot be written, that is said, and it is a temporary one."""
    chosen = os.environ.get(VARIABLE)
    try:
        place = Path(chosen) if chosen else Path(tempfile.gettempdir()) / "gradio"
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place) as probe:
            probe.write(b"0")
        return str(place)
    except OSError as error:
        another = _another()
        log.warning("%s cannot be written (%s); using %s instead.", chosen or "The cache", error, another)
        return another


def _another() -> str:
    """A new temporary directory; where there is none, a name is enough to start and to sample: nothing is stored."""
    try:
        return tempfile.mkdtemp(prefix="gibbs-jem-cache-")
    except OSError:
        return str(Path.cwd() / ".gradio-cache")
