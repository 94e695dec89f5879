# `make demo` and `make test` do all the set-up themselves, in .venv, and are quick the second time.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOWEST_TESTS := tests/noise/test_families.py tests/noise/test_spec.py tests/smoothing tests/test_metrics.py
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-important test-all lint docs wheel notorch lowest bench clean

$(VENV)/.core: pyproject.toml packages/unicr-paper/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .[torch,plots] -e packages/unicr-paper
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e .[dev] -e packages/unicr-paper
	touch $@

demo: $(VENV)/.core
	$(BIN)/unicr demo

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

test-important: $(VENV)/.dev
	$(BIN)/pytest -n 2 --dist worksteal -m "slow and important"

test-all: lint
	$(BIN)/pytest -n 2 --dist worksteal

docs: $(VENV)/.dev
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs

# What a user gets: the wheel, in an environment without the developers' tools, and the demo with it.
wheel:
	rm -rf build/wheel && $(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip wheel --quiet --no-deps -w build/wheel .
	build/wheel/bin/python -m pip install --quiet -c constraints.txt "$$(echo build/wheel/unicr-*.whl)[torch,plots]"
	cd build/wheel && bin/unicr demo --quick --out demo && bin/unicr verify demo/gaussian --replay 2

# What an auditor gets: `pip install unicr` without any extra, on the run of somebody else.
notorch: $(VENV)/.core
	rm -rf build/notorch && $(PYTHON) -m venv build/notorch
	build/notorch/bin/python -m pip install --quiet -c constraints.txt .
	$(BIN)/unicr demo --quick --out build/notorch/demo
	build/notorch/bin/python tools/without_torch.py build/notorch/demo/gaussian

# The lowest versions that pyproject.toml promises (torch stays the pinned one). Tests that compare with
# scipy.stats are left out: the old one is the less accurate side.
lowest:
	rm -rf build/lowest && $(PYTHON) -m venv build/lowest
	$(PYTHON) tools/lowest.py > build/lowest/constraints.txt
	build/lowest/bin/python -m pip install --quiet -c build/lowest/constraints.txt .[torch,plots] pytest hypothesis
	cd build/lowest && bin/unicr demo --quick --out demo
	build/lowest/bin/python -m pytest -p no:cacheprovider -m "not slow" -k "not scipy" $(LOWEST_TESTS)

bench: $(VENV)/.dev
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
