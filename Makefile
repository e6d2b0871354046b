# `make help` lists the targets. Everything is installed into .venv; nothing outside this folder is touched.
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo compare test test-slow test-cuda corpus fuzz endurance audit lock compatibility mutants docs package lint format types layers clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## make .venv and install nmt with all extras and its kernels, at the pinned versions

$(INSTALLED): pyproject.toml constraints.txt setup.py nmt/extras/speed/native/kernels.cpp
	@set -e; \
	if [ ! -x $(BIN)/python ]; then \
	  python=; \
	  for candidate in python3 python3.14 python3.13 python3.12 python3.11; do \
	    if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$candidate; break; fi; \
	  done; \
	  if [ -z "$$python" ]; then \
	    echo 'error: no Python 3.11 or newer found (tried python3, python3.14 to python3.11); install one and run make again' >&2; \
	    exit 2; \
	  fi; \
	  if ! $$python -c 'import venv, ensurepip' 2>/dev/null; then \
	    echo "error: $$python has no venv module; install it (Debian and Ubuntu: apt install python3-venv) and run make again" >&2; \
	    exit 2; \
	  fi; \
	  echo "making $(VENV) with $$($$python --version)"; \
	  $$python -m venv $(VENV); \
	fi; \
	export PIP_DISABLE_PIP_VERSION_CHECK=1; \
	echo 'installing nmt and what it needs (a few minutes the first time)'; \
	$(BIN)/python -m pip install --quiet 'pip>=25.1'; \
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all]' --group dev; \
	if ! ls nmt/extras/speed/native/kernels_*.so > /dev/null 2>&1; then \
	  echo 'no kernels were compiled, for lack of a C++ compiler: translation on a CPU is slower (docs/translate.md#kernels)'; \
	fi
	@touch $@

demo: $(INSTALLED) ## prepare, train, translate, evaluate and align on the corpus that ships
	@$(BIN)/python scripts/demo.py

compare: $(INSTALLED) ## train every attention mechanism for one CPU minute on the corpus that ships, and compare
	@$(BIN)/python scripts/compare_attention.py --config configs/comparison-de-en.yaml --minutes 1 --jobs 2 --split test \
	  --gold data/de-en/test.de data/de-en/test.en data/de-en/test.align

test: lint types layers ## lint, types, layers and all tests but the slow ones
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses auto --dist loadfile \
	  --no-loadscope-reorder -m 'not slow'

test-slow: $(INSTALLED) ## the tests that train models or measure
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto -m slow

test-cuda: $(INSTALLED) ## the tests that need a GPU, then its speed at training and translating, in one table
	@$(BIN)/python scripts/on_cuda.py

corpus: $(INSTALLED) ## generate the corpus that ships, data/de-en, anew, and test its generator; a few minutes
	$(BIN)/python data/generator/make_corpus.py
	$(BIN)/python -m pytest data/generator

fuzz: $(INSTALLED) ## damage every kind of file 100,000 times (FUZZ_CASES=…) and see that each is refused in one line
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --cases $(or $(FUZZ_CASES),100000) --jobs $(or $(FUZZ_JOBS),1)

endurance: $(INSTALLED) ## long work with RUN (default runs/de-en): memory stays, no line is lost; one to three hours
	OMP_NUM_THREADS=1 $(BIN)/python scripts/endurance.py train
	OMP_NUM_THREADS=1 $(BIN)/python scripts/endurance.py translate $(or $(RUN),runs/de-en)
	OMP_NUM_THREADS=1 $(BIN)/python scripts/endurance.py serve $(or $(RUN),runs/de-en)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/workflows/test_any_files.py -m slow

audit: $(INSTALLED) ## look for known vulnerabilities in the pinned versions; needs the network
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/python -m pip_audit --requirement constraints.txt --no-deps --disable-pip

lock: $(INSTALLED) ## write requirements.lock, with hashes, anew from constraints.txt; needs the network
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/python scripts/make_lock.py

compatibility: $(INSTALLED) ## try the oldest, pinned and newest dependencies (PARTS=core …) on each Python at hand; needs the network
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/python scripts/check_compatibility.py $(if $(PARTS),--part $(PARTS))

mutants: $(INSTALLED) ## plant the known faults and 100 drawn by SEED, one at a time, and see that the tests catch each; hours
	@$(BIN)/python scripts/mutants.py --known
	@$(BIN)/python scripts/mutants.py --seed $(or $(SEED),1)

docs: $(INSTALLED) ## the documentation as a site, in build/site: every page, command and configuration key
	$(BIN)/python scripts/docs_site.py build
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --config-file build/mkdocs.yml

package: $(INSTALLED) ## a wheel and a source archive, in dist/; needs the network
	$(BIN)/python -m pip install --quiet build
	rm -rf build dist
	$(BIN)/python -m build --outdir dist

lint: $(INSTALLED) ## style, by ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(INSTALLED) ## put the code into its style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(INSTALLED) ## types, by mypy --strict
	$(BIN)/mypy

layers: $(INSTALLED) ## which package may import which, by import-linter
	$(BIN)/lint-imports

clean: ## remove .venv, caches and build products; runs and data stay
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find nmt scripts tests examples data/generator -name __pycache__ -type d -prune -exec rm -rf {} +
