# Every target sets up what it needs: python3 (>=3.10), git and a package index are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPILED := compat/matrix/compiled/rules.bin compat/matrix/compiled/hardware.bin compat/matrix/compiled/peaks.bin
# make fuzz: inputs for each reader, which readers (all), the first input, and how many readers at a time
COUNT ?= 1000000
READERS ?=
START ?= 0
JOBS ?= 1

# make test PROBES=0: without torch and trl, which the tests of the probes need (1.3 GB where torch is its build for CPU)
PROBES ?= 1

.PHONY: help doctor test fuzz lint bench bench-probe bench-repair peers fixes reproductions audit-rules build clean

help:
	@echo "make doctor         set up, and judge the Python and the hardware of this machine"
	@echo "make test           set up, and run every test (PROBES=0: without those that need torch)"
	@echo "make fuzz           COUNT=1000000 inputs for each reader (READERS=\"uv conda\" JOBS=2 START=0)"
	@echo "make lint           ruff, mypy --strict, the linters of rules and of fact tables"
	@echo "make bench          time and memory side by side with peers, as ratios"
	@echo "make bench-probe    the probes' rates and times, as ratios (an accelerator for most of them)"
	@echo "make bench-repair   plans for real releases beside uv pip compile, as ratios (uses the index)"
	@echo "make peers          CASES=cases.jsonl: described environments, given to peers as well"
	@echo "make fixes          CASES=cases.jsonl: a plan for each of them, held against what mended it (uses the index)"
	@echo "make reproductions  show the founding bugs with the real packages (downloads releases)"
	@echo "make audit-rules    rules whose cause is a name, held against the mined source"
	@echo "make build          wheel and sdist in dist/"

# findings are no failure of make: the report says what they are
doctor: $(VENV)/.installed $(COMPILED)
	@$(BIN)/compat doctor --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" || test $$? -eq 1

test: $(VENV)/.dev $(if $(filter-out 0,$(PROBES)),$(VENV)/.probes) $(COMPILED)
	$(BIN)/pytest -n auto

fuzz: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m tests.fuzz.fuzz_readers --count $(COUNT) --start $(START) --jobs $(JOBS) $(addprefix --reader ,$(READERS))

lint: $(VENV)/.dev $(COMPILED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/compat rules lint
	$(BIN)/python -m scripts.lint_facts

bench: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m benchmarks.check
	$(BIN)/python -m benchmarks.files

bench-probe: $(VENV)/.dev $(VENV)/.probes $(COMPILED)
	$(BIN)/python -m benchmarks.probe

bench-repair: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m benchmarks.repair --second-engine
	$(BIN)/python -m benchmarks.repair

peers: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m benchmarks.peers

fixes: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m benchmarks.fixes

reproductions: $(VENV)/.dev
	COMPAT_REPRODUCE=1 $(BIN)/pytest tests/reproductions

audit-rules: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m scripts.surface.audit

build: $(VENV)/.dev
	$(BIN)/python -m build

$(VENV)/.installed: pyproject.toml scripts/build_hook.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(VENV)/.probes: tests/probe/requirements.txt | $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement tests/probe/requirements.txt
	@touch $@

$(COMPILED) &: $(wildcard matrix/*.toml matrix/rules/*.toml matrix/facts/*.csv matrix/surface/*.bin compat/matrix/*.py) compat/versions.py scripts/build_matrix.py | $(VENV)/.installed
	$(BIN)/python scripts/build_matrix.py

clean:
	rm -rf $(VENV) dist build .bench .reproductions compat/matrix/compiled
