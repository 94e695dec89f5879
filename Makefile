# `make demo` and `make test` do all the set-up themselves, in .venv, and are quick the second time.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-all lint docs bench clean

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e .[dev]
	touch $@

demo: $(VENV)/.core
	$(BIN)/unicr demo

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

test-all: lint
	$(BIN)/pytest -n 2 --dist worksteal

docs: $(VENV)/.dev
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs

bench: $(VENV)/.dev
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
