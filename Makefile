# Environments are created on demand: with uv where it is installed, else with venv and pip.
# .venv has the tools of a developer, .venv-run only what the package itself needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PLAIN := .venv-run
PLAIN_READY := $(PLAIN)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run newcomer day test browser weights lint format docs bench soak scale figures picture serve clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv with the pinned versions

run: $(PLAIN_READY) ## watch a stuck agent get unstuck (no network, no keys)
	@$(PLAIN)/bin/scrum-master run

newcomer: ## do what a newcomer does: `make run`, then the tutorial without the developers' tools
	@$(MAKE) --no-print-directory run
	@$(MAKE) --no-print-directory setup
	READER_BIN=$(CURDIR)/$(PLAIN)/bin $(BIN)/pytest -m newcomer tests/test_docs.py

day: $(READY) ## go through a user's first day outside the clone, from the installation to the removal
	@$(BIN)/python tests/day

test: $(READY) ## run the tests, then those that touch checkpoints again in the strict msgpack mode
	$(BIN)/pytest -n 2 --dist loadfile
	LANGGRAPH_STRICT_MSGPACK=true $(BIN)/pytest -m checkpoint

browser: $(READY) ## test the inspector in a real browser, which is installed where it is missing and may be
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
		echo "There is no Chromium, and it cannot be installed here: the browser tests are skipped."
	$(BIN)/pytest -m browser

weights: $(READY) ## train the asking model again, and check that the shipped weights come out
	$(BIN)/python benchmarks/train_asking.py --check

lint: $(READY) ## check format, style, types, layers and that the documentation builds
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tests/check_layout.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

format: $(READY) ## format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY) ## show the documentation on loopback, renewed as it changes
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --dev-addr 127.0.0.1:8000

soak: $(READY) ## prove the memory by kills, races, damage, full disks, clients at once (20 minutes)
	$(BIN)/python benchmarks/soak.py

scale: $(READY) ## search a million records (an hour)
	$(BIN)/python benchmarks/scale.py

bench: $(READY) ## print the benchmarks' ratios
	@for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

figures: $(READY) ## run the benchmarks at full size and write docs/figures.md (takes a quarter of an hour)
	@$(BIN)/python benchmarks/figures.py

picture: $(READY) ## draw the pictures of `make run` and of the inspector
	$(BIN)/scrum-master run --svg docs/images/run.svg
	PYTHONPATH=tests $(BIN)/python tests/screenshots.py

serve: $(READY) ## serve the graphs with `langgraph dev` on loopback
	LANGGRAPH_CLI_NO_ANALYTICS=1 $(BIN)/langgraph dev --host 127.0.0.1 --no-browser

clean: ## remove the environment and all caches
	rm -rf $(VENV) $(PLAIN) .mypy_cache .ruff_cache .pytest_cache .langgraph_api .hypothesis dist site

# $(call install,ENVIRONMENT,WHAT,HOW LONG)
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@echo "Setting up $(1) with the pinned versions: $(3), only this once."
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python "$(PYTHON)" $(1) && \
		uv pip install --quiet --python $(1)/bin/python -c constraints.txt -e $(2); \
	else \
		$(PYTHON) -m venv $(1) && \
		$(1)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e $(2); \
	fi
	@touch $@
endef

$(READY): pyproject.toml constraints.txt
	$(call install,$(VENV),'.[dev]',a minute or two)

$(PLAIN_READY): pyproject.toml constraints.txt
	$(call install,$(PLAIN),'.' pytest,half a minute)
