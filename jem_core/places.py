"""Where the files that come with the program are: beside the packages in the repository, inside this one in a wheel."""

from pathlib import Path

_HERE = Path(__file__).resolve().parent
ASSETS = next((place for place in (_HERE / "assets", _HERE.parent / "assets") if place.is_dir()), _HERE / "assets")
