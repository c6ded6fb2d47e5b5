# Every target installs what it needs into .venv, once; a change of pyproject.toml installs again.
# Another interpreter: make clean && make PYTHON=python3.12

PYTHON ?= python3

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
VENV := .venv/.stamp-venv
PACKAGE := .venv/.stamp-package
TEST_TOOLS := .venv/.stamp-test
LINT_TOOLS := .venv/.stamp-lint
BROWSER_TOOLS := .venv/.stamp-browser
REFERENCE_TOOLS := .venv/.stamp-reference
BENCHMARKS := $(sort $(wildcard benchmarks/[!_]*.py))

.DEFAULT_GOAL := plan
.PHONY: plan test check slow browser reference docs bench clean

plan: $(PACKAGE)  ## the main job: plan a model
	$(BIN)/slicewise plan llama-3-70b

test: $(TEST_TOOLS)  ## all tests but those that take long
	$(BIN)/pytest -n auto -m "not slow and not xla and not browser and not reference"

check: $(LINT_TOOLS)  ## format, lint, types, import floors
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

slow: $(TEST_TOOLS)  ## the slow tests, and those that compile for TPU slices
	$(BIN)/pytest -n auto -m "slow or xla"

browser: $(BROWSER_TOOLS)  ## the explorer in chromium; where times are measured, one page at a time
	$(BIN)/pytest -n 2 -m browser --ignore tests/web/test_browser_drag.py
	$(BIN)/pytest -m browser tests/web/test_browser_drag.py

reference: $(REFERENCE_TOOLS)  ## the JAX programs against transformers, which needs torch
	$(BIN)/pytest -m reference

docs: $(TEST_TOOLS)  ## write the generated pages again
	$(BIN)/python scripts/make_docs.py

bench: $(TEST_TOOLS)  ## run every script in benchmarks/
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python "$$script"; done

clean:  ## remove .venv and all that the tools left behind
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name .git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

$(VENV):
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "slicewise needs Python 3.11 or newer, but this is %s: set PYTHON, as in make PYTHON=python3.12" % sys.version.split()[0])'
	$(PYTHON) -m venv --clear .venv
	$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

$(PACKAGE): $(VENV) pyproject.toml
	$(PIP) install --editable '.[figures]'
	@touch $@

$(TEST_TOOLS): $(PACKAGE)
	$(PIP) install --group test --editable '.[figures,verify,calibrate,traffic]'
	@touch $@

$(LINT_TOOLS): $(PACKAGE)
	$(PIP) install --group lint
	@touch $@

$(BROWSER_TOOLS): $(TEST_TOOLS)
	$(PIP) install --group browser
	@touch $@

$(REFERENCE_TOOLS): $(TEST_TOOLS)
	$(PIP) install --group reference
	@touch $@
