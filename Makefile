# On a fresh machine: `make demo` opens the app on the bundled model, `make test` runs all tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint audit browser clean

demo: $(VENV)/app.done
	$(BIN)/python app.py

test: $(VENV)/dev.done browser
	OMP_NUM_THREADS=2 $(BIN)/python -m pytest

lint: $(VENV)/dev.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Known weaknesses of the pinned packages; asks the public advisory databases, so it needs the network. Newer releases
# are listed first: their notes say what they mended. What was found, and why it does not reach us, is in SECURITY.md.
audit: $(VENV)/app.done
	$(BIN)/python -m pip list --outdated
	$(BIN)/python -m pip install --quiet pip-audit==2.10.1
	$(BIN)/pip-audit --strict -r requirements.txt

$(VENV)/bin/python:
	$(PYTHON) -m venv --upgrade-deps $(VENV)

$(VENV)/app.done: requirements.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -r requirements.txt
	touch $@

$(VENV)/dev.done: requirements.txt requirements-dev.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	touch $@ $(VENV)/app.done

# The browser tests drive Debian's chromium; without it, and without the right to install it, they are skipped.
browser:
	@if command -v chromium >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	else echo "chromium is not installed: the browser tests will be skipped (install it to run them)."; fi

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache
