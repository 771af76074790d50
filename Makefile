# Every target sets up what it needs: python3 (>=3.10), git and a package index are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPILED := compat/data/rules.bin compat/data/hardware.bin compat/data/peaks.bin
# make fuzz: inputs for each reader, which readers (all), the first input, and how many readers at a time
COUNT ?= 1000000
READERS ?=
START ?= 0
JOBS ?= 1

# make golden RECORD=1: after a wanted change of an answer
RECORD ?= 0

# make trial: the first and the last seed, and what else scripts/trial is asked for ("--judge", "--python 3.12")
FIRST ?= 1
LAST ?= 50
ASK ?=

# make test PROBES=0: without torch and trl, which the tests of the probes need (1.3 GB where torch is its build for CPU)
PROBES ?= 1

.PHONY: help doctor test test-all golden shape fuzz lint bench bench-probe bench-repair peers fixes fixes-corpus reproductions audit audit-fixes audit-rules trial build site test-site clean

help:
	@echo "make doctor         set up, and check the Python and the hardware of this machine"
	@echo "make test           set up, and run every test (PROBES=0: without those that need torch)"
	@echo "make test-all       the same with the slowest tests, and four times as many examples in the property tests"
	@echo "make golden         compare what every command prints with recorded answers (RECORD=1: record them)"
	@echo "make shape          figures on the code: size, import cycles, imports against the direction"
	@echo "make fuzz           COUNT=1000000 inputs for each reader (READERS=\"uv conda\" JOBS=2 START=0)"
	@echo "make lint           ruff, mypy --strict, the linters of rules and of fact tables"
	@echo "make bench          time and memory compared with similar tools, as ratios"
	@echo "make bench-probe    the probes' rates and times, as ratios (most need an accelerator)"
	@echo "make bench-repair   plans for real releases compared with uv pip compile, as ratios (uses the index)"
	@echo "make peers          CASES=cases.jsonl: give the same environments to similar tools"
	@echo "make fixes          CASES=cases.jsonl: plan a fix for each case and compare it with the one that worked (uses the index)"
	@echo "make fixes-corpus   fix published files for targets that break them, check again, resolve with uv (uses the index)"
	@echo "make reproductions  show the founding bugs with the real packages (downloads releases)"
	@echo "make audit          evidence for every bound of every rule, from released source (reads the index); docs/rule-audit.md"
	@echo "make audit-fixes    resolve every fix of every rule with uv and check the result (reads the index); matrix/fixes.csv"
	@echo "make audit-rules    compare rules about missing names with the mined source"
	@echo "make trial          FIRST=1 LAST=50: run a small program in random environments and compare with doctor and diagnose (reads the index)"
	@echo "make build          wheel and sdist in dist/"
	@echo "make site           the site in dist/site: tables, rules, and a page that checks in the browser (npm, once)"
	@echo "make test-site      the site in a real Chromium (node, npm and chromium)"

# findings are no failure of make: the report says what they are
doctor: $(VENV)/.installed $(COMPILED)
	@$(BIN)/compat doctor --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" || test $$? -eq 1

test: $(VENV)/.dev $(if $(filter-out 0,$(PROBES)),$(VENV)/.probes) $(COMPILED)
	$(BIN)/pytest -n auto --dist loadgroup

test-all: export COMPAT_THOROUGH = 1
test-all: test

golden: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m scripts.golden $(if $(filter-out 0,$(RECORD)),--record)

shape: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m scripts.shape

fuzz: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m tests.fuzz.fuzz_readers --count $(COUNT) --start $(START) --jobs $(JOBS) $(addprefix --reader ,$(READERS))

lint: $(VENV)/.dev $(COMPILED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/compat rules lint
	$(BIN)/python -m scripts.lint_facts

bench: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m benchmarks.check; reached=$$?; $(BIN)/python -m benchmarks.files && exit $$reached

bench-probe: $(VENV)/.dev $(VENV)/.probes $(COMPILED)
	$(BIN)/python -m benchmarks.probe

bench-repair: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m benchmarks.repair --second-engine
	$(BIN)/python -m benchmarks.repair

peers: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m benchmarks.peers

fixes: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m benchmarks.fixes

fixes-corpus: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m benchmarks.fixes_corpus

reproductions: $(VENV)/.dev
	COMPAT_REPRODUCE=1 $(BIN)/pytest tests/reproductions

audit: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m scripts.audit

audit-fixes: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m scripts.audit.fixes
	$(BIN)/python -m scripts.audit.corners
	$(BIN)/python -m scripts.audit.companions

audit-rules: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m scripts.surface.audit

trial: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m scripts.trial $(FIRST) $(LAST) $(ASK)

build: $(VENV)/.dev
	$(BIN)/python -m build

site: $(VENV)/.dev $(COMPILED)
	$(BIN)/python -m scripts.site

test-site: site
	npm install --prefix dist/browser --no-audit --no-fund --ignore-scripts --silent playwright-core@1.65.1 axe-core@4.14.1
	COMPAT_SITE=dist/site $(BIN)/pytest tests/site

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

$(COMPILED) &: $(wildcard matrix/*.toml matrix/rules/*.toml matrix/symptoms/*.toml matrix/facts/*.csv matrix/evidence/*.csv matrix/surface/*.bin compat/rules/*.py compat/tables/*.py compat/interfaces/*.py) compat/diagnosis/symptoms.py compat/versions.py scripts/build_matrix.py $(wildcard scripts/pack_*.py) | $(VENV)/.installed
	$(BIN)/python scripts/build_matrix.py

clean:
	rm -rf $(VENV) dist build .bench .reproductions .trials compat/data
