"""Try the package as whoever installs it would: into a new environment, away from here, with a page in a real browser.

    python tests/e2e/try_package.py [--source WHERE] [--picture FILE.png] [--folder DIR]

Not part of the test run: it installs 1.4 GB. --source is what pip installs: this repository, a wheel or a Git address.
Needs what requirements-dev.txt lists, and chromium. Ends with 1 where something is not as it should be. With --folder,
the environment is kept and used again.
"""

import argparse
import json
import sys
from pathlib import Path

from try_space import ROOT, call, check_log, served, timed, use, work


def attempt(folder: Path, args: argparse.Namespace) -> None:
    """What else the installed package does is in tests/test_package.py, with packages that are here already."""
    programs, log, away = folder / "venv" / "bin", folder / "log.txt", folder / "away"
    away.mkdir(exist_ok=True)
    command = programs / "gibbs-jem"
    if not command.exists():
        with timed(f"new environment, pip install {args.source}"):
            call(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
            call(programs / "python", "-m", "pip", "install", "--quiet", args.source, cwd=Path.cwd())
    with timed("gibbs-jem --help"):
        call(command, "--help", cwd=away)
    with served([command], away, log) as url, timed("gibbs-jem, in the browser"):
        facts = use(url, args.picture)
    print(f"  {json.dumps(facts)}", flush=True)
    check_log(log)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", default=str(ROOT), help="what pip installs")
    work(parser, attempt)
    print("The package works.")


if __name__ == "__main__":
    main()
