"""The entry point, also of a Space: python app.py [--model NAME|DIRECTORY] [--port 7860]."""

import sys

from app.shell import build, launch, options  # the package beside this file: Python prefers it to a module of its name

chosen = options(sys.argv[1:] if __name__ == "__main__" else ())
try:
    demo = build(chosen)
except ValueError as error:  # no model, or a bad one: a sentence says which
    sys.exit(f"app.py: {error}")

if __name__ == "__main__":
    launch(demo, chosen)
