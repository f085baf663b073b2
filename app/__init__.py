"""The app in the browser."""

import os

# Torch's threads otherwise spin while they wait for each other: beside any other work (a browser, a second run, another
# program) a step then takes ten times as long. OpenMP reads this once, when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
