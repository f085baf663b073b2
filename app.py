"""The entry point, also of a Space: python app.py [--model DIRECTORY] [--port 7860]."""

import sys

from app.shell import build, launch, options  # the package beside this file: Python prefers it to a module of its name

chosen = options(sys.argv[1:] if __name__ == "__main__" else ())
demo = build(chosen)

if __name__ == "__main__":
    launch(demo, chosen)
