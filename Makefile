# `make train` and `make test` do all the set-up: a virtual environment of their own, with the pinned versions.

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/ready
# A worker takes up to 3 GB: so no more than four.
PYTEST := $(VENV)/bin/python -m pytest -n logical --maxprocesses 4

# The tests start hundreds of processes. Each would compile the package anew where no compiled files may be kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: train test test-all test-sample quick lint lint-windows clean

train: $(READY)
	$(VENV)/bin/nn-manual train config/digits.yaml

# mypy works on one core: beside the tests it takes half a minute less.
test: $(READY)
	$(MAKE) --no-print-directory -j2 lint quick

quick: $(READY)
	$(PYTEST) -m "not slow"

# `make -j2 test-all` does side by side what stands before the tests: each of it works on one core.
test-all: lint lint-windows $(VENV)/extras
	$(PYTEST) -m "not slow"
	$(PYTEST) -m slow

# The slow tests take most of an hour on two cores. A twentieth of them goes with each commit, the next one with the next.
test-sample: lint lint-windows $(VENV)/extras
	$(PYTEST) -m "not slow"
	$(PYTEST) -m slow --twentieth $$(($$(git rev-list --count HEAD || echo 0) % 20))

lint: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

lint-windows: $(READY)
	$(VENV)/bin/mypy --platform win32 --cache-dir .mypy_cache/win32 nn_manual _nn_manual_pytest_plugin.py

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "nn_manual needs Python 3.11 or newer; choose one with: make PYTHON=python3.12"; exit 1; }
	@echo "installing into $(VENV), once: a minute or two, and some 400 MB to load with a CPU build of PyTorch"
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --constraint constraints.txt --editable '.[dev,fast]'
	@touch $@

$(VENV)/extras: $(READY)
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[notebook,tensorboard]'
	@touch $@

clean:
	rm -rf $(VENV) build
