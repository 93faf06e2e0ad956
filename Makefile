# make demo: set up, then watch one matmul go through every level.  make test: everything once.
PYTHON ?= python3
BIN := .venv/bin
# keep bytecode even where the environment says not to: compiling ncc anew is half of a small run
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test sweep bench tutorials book lint setup clean
.DEFAULT_GOAL := demo

setup: .venv/ready-dev
demo: .venv/ready
	@$(BIN)/python examples/demo.py demo

test: .venv/ready-dev
	$(BIN)/python -m pytest -q -p no:cacheprovider -n auto --dist worksteal -m 'not sweep'

sweep: .venv/ready-dev
	$(BIN)/python -m pytest -q -p no:cacheprovider -n auto -m sweep
	$(BIN)/python tests/sweep.py
	$(BIN)/python tests/sweep_attention.py

bench: .venv/ready-dev
	$(BIN)/python bench/bench.py

tutorials: .venv/ready-dev
	$(BIN)/python tests/tutorials.py $(DIR)

book: .venv/ready-dev
	$(BIN)/pip install -q -e '.[book]'
	$(BIN)/python book/build.py
	$(BIN)/sphinx-build -q -b html book book/_build

lint: .venv/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -e '.[draw]'
	$(BIN)/python -m compileall -q ncc
	touch $@

.venv/ready-dev: .venv/ready
	$(BIN)/pip install -q -e '.[draw,dev]'
	touch $@

clean:
	rm -rf .venv demo
