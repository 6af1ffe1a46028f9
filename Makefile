# Two commands on a fresh machine: `make demo` and `make test`. Each sets up everything it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: demo test data lint types bench clean

demo: $(READY)
	$(BIN)/placecell sweep latin_square --preset quick
	$(BIN)/placecell analyse runs/latin_square-quick

test: lint types
	$(BIN)/python -m pytest -n auto

# Real fMRI for the tests that need it. Whoever runs this accepts the HCP's data use terms; without it they skip.
data: $(READY)
	timeout 600 $(BIN)/placecell fetch hcp-schaefer100 --accept-hcp-terms
	timeout 600 $(BIN)/placecell fetch hcp-aal2 --accept-hcp-terms

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/pip install --quiet -c constraints.txt -e ".[bench]"
	$(BIN)/python benchmarks/train_step.py
	$(BIN)/python benchmarks/puzzles.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'placecell needs Python 3.11 or newer; set PYTHON=python3.x')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
