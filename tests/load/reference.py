"""Chains without any server: python tests/load/reference.py [--model DIR], with the settings on standard input.

A program of its own, with as many threads as the server: some processors add up in another order with two.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

PAUSES = (6, 10)  # steps at which a visitor's exact run stands still and is compared


def reference(settings: list[dict], models: list[str], threads: int) -> list[list[str]]:
    """The digests of the chains that each of these settings begins, at every pause."""
    command = [sys.executable, __file__, *(word for model in models for word in ("--model", model))]
    variables = os.environ | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, input=json.dumps(settings), env=variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def digests(models: list[str], settings: list[dict]) -> list[list[str]]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from app.catalog import Catalog
    from app.chains import Stepper, begin
    from app.settings import read

    catalog, found = Catalog(models, device="cpu"), []
    for values in settings:
        asked = read(values, catalog.attributes())
        chains = begin(catalog, asked)
        stepper, seen = Stepper(catalog, chains, asked), []
        for step in range(1, PAUSES[-1] + 1):
            stepper.advance()
            if step in PAUSES:
                seen.append(chains.digest())
        found.append(seen)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", default=[], help="a model besides the bundled ones")
    print(json.dumps(digests(parser.parse_args().model, json.load(sys.stdin))))
