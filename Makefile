# Every target makes .venv by itself and is quick the second time. Needs Python >= 3.11, git and make.
PYTHON ?= python3
SEED ?= 46

BIN := .venv/bin
RUN := .venv/installed
DEV := .venv/installed-dev
# Compiled afterwards, on every core: pip would do it on one. Some files in libraries are templates, no Python.
COMPILE = $(BIN)/python -m compileall -q -j 0 -x '/(tests|testing)/' .venv/lib >/dev/null 2>&1 || true
OURS := orchestrator media worlds planners generators storage workers service bench cliploop
COMPILE_OURS := $(BIN)/python -m compileall -q -j 0 $(OURS)
PIP := $(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check -c constraints.txt

# One thread per process in numeric libraries: pytest already runs two processes per core (tests/conftest.py).
TEST_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# pyright runs on the node that its wheel brings, and looks nothing up.
PYRIGHT := PYRIGHT_PYTHON_GLOBAL_NODE=0 PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo up test check lint bench-loop bench-load clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(RUN) ## solve a maze step by step, without GPU, key or network (about a minute)
	@$(COMPILE_OURS)
	@$(BIN)/cliploop run --image examples/maze/first_frame.png --prompt examples/maze/prompt.txt \
	  --generator simulated --seed $(SEED) -o out/demo --fresh

up: $(RUN) ## serve the HTTP API on 127.0.0.1:8000, with its own broker and workers, until Ctrl-C
	@$(COMPILE_OURS)
	@$(BIN)/cliploop up

test: lint ## lint, types, import contracts and all tests: what CI runs
	@$(COMPILE_OURS)
	@$(TEST_ENV) $(BIN)/pytest -n auto --dist worksteal

check: lint ## the quick half of `make test`: without the slow tests
	@$(COMPILE_OURS)
	@$(TEST_ENV) $(BIN)/pytest -n auto --dist worksteal -m "not slow"

bench-loop: $(RUN) ## measure what the loop itself costs per attempt
	@$(BIN)/python -m bench.loop

bench-load: $(RUN) ## measure the service under load (about seven minutes, wants two cores for itself)
	@$(BIN)/python -m bench.load

clean: ## remove .venv, out/ and caches
	rm -rf .venv out dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

lint: $(DEV)
	@$(call quiet,lint,$(BIN)/ruff check .)
	@$(call quiet,format,$(BIN)/ruff format --check .)
	@$(call quiet,types,$(PYRIGHT))
	@$(call quiet,import contracts,$(BIN)/lint-imports)

# Run a check: its name when green, its output when not.
quiet = said=$$($(2) 2>&1) && echo "$(1): ok" || { printf '%s\n' "$$said"; echo "$(1): failed ($(2))"; exit 1; }

$(RUN): pyproject.toml constraints.txt
	@$(make_venv)
	@echo "Installing into .venv (once) ..."
	@$(PIP) -e .
	@$(COMPILE)
	@touch $@

$(DEV): pyproject.toml constraints.txt
	@$(make_venv)
	@echo "Installing into .venv, with the tools for tests (once) ..."
	@$(PIP) -e ".[dev]"
	@$(COMPILE)
	@touch $(RUN) $@

# A usable .venv stays; a missing or broken one is made anew.
define make_venv
$(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
    echo "Cliploop needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo 'not there')."; \
    echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12"; \
    exit 1; \
  }; \
  $(PYTHON) -m venv --clear .venv; \
}
endef
