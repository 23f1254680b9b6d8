# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PEERS := .venv-peers

.PHONY: demo test coverage test-slow docs peers format clean

demo: $(INSTALLED)  ## find a law of nature in data that ship with the package
	@$(BIN)/eqlearn fit

test: $(INSTALLED)  ## format, lint, types, all quick tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

coverage: $(INSTALLED)  ## the quick tests, and which lines they reach (half as long again)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal --cov --cov-report=term

test-slow: $(INSTALLED)  ## the long checks
	$(BIN)/pytest -m slow --timeout 5400

docs: $(INSTALLED)  ## the manual, as web pages in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

peers: $(INSTALLED) $(PEERS)/.installed  ## eqlearn beside gplearn, pyoperon, pykan, pysindy (hours; ARGS="--workers 2")
	$(BIN)/python benchmarks/peers/run.py $(ARGS)
	$(BIN)/python benchmarks/dynamics/run.py --peers $(PEERS)/bin/python
	$(BIN)/python benchmarks/dynamics/run.py --peers $(PEERS)/bin/python --noise 0.02 --seconds 60

format: $(INSTALLED)  ## mend format and what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(PEERS) site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "eqlearn needs Python 3.11 or newer: make PYTHON=/path/to/python3 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(PEERS)/.installed: benchmarks/peers/requirements.txt constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r benchmarks/peers/requirements.txt
	@touch $@
