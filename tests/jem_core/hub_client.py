"""Load models by name in a process of its own: huggingface_hub reads HF_ENDPOINT once, when it is imported.

Reads one name a line, answers one line of JSON each: what was loaded or the error, the seconds, and what was logged.
"""

import json
import logging
import sys
import time

import jem_core
from jem_core import hub


class Keep(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        logged.append(record.getMessage())


def load(name: str) -> dict:
    steps: list[tuple[int, int]] = []
    bundle = jem_core.load(name, progress=lambda done, total: steps.append((done, total)))
    with_weights = sum(float(weight.double().sum()) for weight in bundle.model.parameters())
    return {"commit": bundle.directory.name, "model": bundle.name, "weights": with_weights, "progress": steps}


logged: list[str] = []
hub.log.addHandler(Keep())
print("ready", flush=True)
for line in sys.stdin:
    logged.clear()
    start = time.monotonic()
    try:
        answer = load(line.rstrip("\n"))
    except ValueError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer | {"seconds": time.monotonic() - start, "log": logged}), flush=True)
