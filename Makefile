# Everything a person or a machine needs to run, test and change busbw. `make run` and `make test` start from nothing
# but Python 3.11 to 3.14 and a C++ compiler. Choose the interpreter with PYTHON=..., pass arguments with ARGS=...
PYTHON ?= python3
ARGS ?=
# Seconds for each fuzz harness.
FUZZ_SECONDS ?= 60

BIN := .venv/bin
NATIVE := $(shell find core tests benchmarks -name '*.[ch]' -o -name '*.[ch]pp' -o -name '*.cu')
BOOTSTRAP = @command -v $(PYTHON) >/dev/null || { echo "error: no $(PYTHON) found; choose one: make PYTHON=..." >&2; \
	exit 2; }; $(PYTHON) scripts/bootstrap.py

.PHONY: help run test envs lint format stub sanitize fuzz fidelity clean

help:
	@echo "make run       measure this machine:       busbw run \$$ARGS"
	@echo "make test      run every test:             pytest \$$ARGS"
	@echo "make lint      check format, rules, types: ruff, mypy, clang-format"
	@echo "make format    rewrite what lint can"
	@echo "make stub      write src/busbw/_core.pyi from the compiled core"
	@echo "make sanitize  run the core's own checks plain and under address, undefined and thread sanitizers, or $$ARGS of them"
	@echo "make fuzz      feed every parser for FUZZ_SECONDS=$(FUZZ_SECONDS) each"
	@echo "make fidelity  busbw against a bare C program, and against IMB-MPI1"
	@echo "make envs      environments with MPICH and Intel MPI: .venv-mpich, .venv-impi"
	@echo "make clean     remove environments and build outputs"

run:
	$(BOOTSTRAP) run
	@# Findings (1) and "cannot tell" (4) are answers; only what gave none fails here.
	$(BIN)/busbw run $(ARGS) || case $$? in 1 | 4) ;; *) exit 3 ;; esac

test:
	$(BOOTSTRAP) test
	scripts/test.sh $(ARGS)

envs:
	$(BOOTSTRAP) envs

lint:
	$(BOOTSTRAP) dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run -Werror $(NATIVE)
	$(BIN)/mypy

format:
	$(BOOTSTRAP) dev
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE)

stub:
	$(BOOTSTRAP) dev
	$(BIN)/python -m nanobind.stubgen -q -m busbw._core -o src/busbw/_core.pyi

sanitize:
	$(BOOTSTRAP) dev
	scripts/sanitize.sh $(ARGS)

fuzz:
	$(BOOTSTRAP) fuzz
	$(BIN)/python tests/fuzz/campaign.py --seconds $(FUZZ_SECONDS)

fidelity:
	$(BOOTSTRAP) envs
	$(BIN)/python benchmarks/fidelity/fidelity.py
	$(BIN)/python benchmarks/fidelity/fidelity.py --venv .venv-mpich
	$(BIN)/python benchmarks/fidelity/fidelity.py --venv .venv-impi
	for venv in .venv .venv-mpich .venv-impi; do $(BIN)/python benchmarks/fabric/loops.py --venv $$venv || exit 1; done

clean:
	rm -rf .venv .venv-mpich .venv-impi build .mypy_cache .ruff_cache .pytest_cache .hypothesis
