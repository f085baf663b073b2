# On a fresh machine: `make demo` opens the app on the bundled models, `make test` runs all tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet

.PHONY: demo test test-core test-page test-app test-train test-quick test-lowest coverage lint lock audit browser scripts clean

demo: $(VENV)/app.done
	$(BIN)/python app.py

# Two parts at a time, the longest first: the core that is done takes the next. Then, alone, what goes by the clock:
# crowds, and the browser tests that time the page.
PARTS := test-core test-page test-app test-train
CLOCK := tests/load tests/e2e/test_running.py
test: $(VENV)/dev.done browser scripts
	OMP_NUM_THREADS=1 $(MAKE) --no-print-directory --keep-going -j2 $(PARTS)
	OMP_NUM_THREADS=2 $(BIN)/python -m pytest $(CLOCK)

# Shown when it is done: two parts at a time would talk at once.
PYTEST = @log=$$(mktemp); echo "Running $@"; $(BIN)/python -m pytest -q $(1) >$$log 2>&1; found=$$?; \
	echo "$@:"; cat $$log; rm $$log; exit $$found
test-core:
	$(call PYTEST,tests/jem_core)
test-page:
	$(call PYTEST,tests/e2e $(CLOCK:%=--ignore=%))
test-app:
	$(call PYTEST,tests/app $(wildcard tests/test_*.py))
test-train:
	$(call PYTEST,tests/train)

# For daily work, in less than two minutes: no browsers, no crowds, no whole trainings, no other processes.
test-quick: $(VENV)/dev.done
	OMP_NUM_THREADS=2 $(BIN)/python -m pytest -q --quick

# How much of the core and of the app their own tests run, without browsers; which lines they do not is in the report.
coverage: $(VENV)/dev.done
	OMP_NUM_THREADS=2 $(BIN)/python -m pytest -q tests/jem_core tests/app --cov=jem_core --cov=app --cov-report=
	$(BIN)/coverage report --show-missing --include='jem_core/*' --fail-under=90
	$(BIN)/coverage report --show-missing --include='app/*' --fail-under=85

# The tests of daily work with the oldest packages that pyproject.toml allows, in an environment of its own.
OLDEST = $(shell sed -n '/^dependencies/,/^]/s/^ *"\([^>]*\)>=\([0-9.]*\)[,"].*/\1==\2/p' pyproject.toml)
TESTING = $(shell grep -E '^(pytest|torchmetrics|torchvision)==' requirements-dev.txt)
test-lowest: | $(VENV)/bin/python
	$(PYTHON) -m venv --upgrade-deps $(VENV)/lowest
	$(VENV)/lowest/bin/python -m pip install --quiet $(OLDEST) $(TESTING)
	OMP_NUM_THREADS=2 $(VENV)/lowest/bin/python -m pytest -q --quick

lint: $(VENV)/dev.done scripts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if [ -d node_modules ]; then npm run --silent lint; fi

# Every package at one version, by its hashes. Torch is left out: its builds for CPUs and for GPUs differ in hash and
# need other packages, and the machine's own pip settings decide which one is right.
LOCK := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --no-emit-options --no-emit-index-url \
	--no-emit-find-links --no-emit-trusted-host --unsafe-package torch --unsafe-package setuptools --unsafe-package pip
lock: export CUSTOM_COMPILE_COMMAND = make lock
lock: | $(VENV)/bin/python
	$(INSTALL) pip-tools==7.6.2
	$(LOCK) --output-file requirements-dev.lock requirements-dev.txt
	cp requirements-dev.lock requirements.lock
	$(LOCK) --output-file requirements.lock requirements.txt

# Known weaknesses of the pinned packages. It asks the public advisory databases, and fails without them. First it lists
# newer releases: their notes say what they mended. What was found, and why it cannot harm us, is in SECURITY.md.
audit: $(VENV)/app.done
	$(BIN)/python -m pip list --outdated
	$(BIN)/python -m pip install --quiet pip-audit==2.10.1
	$(BIN)/pip-audit --strict -r requirements.txt

$(VENV)/bin/python:
	$(PYTHON) -m venv --upgrade-deps $(VENV)

# The locks are complete, so nothing is resolved (--no-deps). Whoever needs other versions: pip install .
TORCH = $(shell grep ^torch== requirements.txt)
$(VENV)/app.done: requirements.txt requirements.lock | $(VENV)/bin/python
	$(INSTALL) --require-hashes --no-deps -r requirements.lock
	$(INSTALL) $(TORCH)
	touch $@

$(VENV)/dev.done: requirements.txt requirements-dev.lock | $(VENV)/bin/python
	$(INSTALL) --require-hashes --no-deps -r requirements-dev.lock
	$(INSTALL) $(TORCH)
	touch $@ $(VENV)/app.done

# The browser tests drive Debian's chromium. Where it is missing and may not be installed they are skipped, and said to
# be; where everything must run (CI is set), that is a failure.
browser:
	@if command -v chromium >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	else echo "chromium is not installed: the browser tests cannot run."; [ -z "$$CI" ]; fi

# The page's scripts are linted, checked and tested with the tools in package.json; the app itself needs none of them.
# Not `npm ci`: it refuses a lock without the binaries of every platform, and not every registry carries them all.
scripts:
	@if command -v npm >/dev/null; then [ node_modules -nt package.json ] || \
		{ npm install --no-save --silent --no-audit --no-fund && touch node_modules; }; \
	else echo "node is not installed: the page's scripts are neither linted nor tested."; [ -z "$$CI" ]; fi

clean:
	rm -rf $(VENV) node_modules .pytest_cache .ruff_cache .mypy_cache
