# Everything runs in .venv, made on demand: with uv where it is installed, else with venv and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run newcomer test browser lint format docs bench soak scale figures picture serve clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv with the pinned versions

run: $(READY) ## watch a stuck agent get unstuck (no network, no keys)
	@$(BIN)/scrum-master run

newcomer: ## do what a newcomer does: `make run`, then the tutorial, each command ending as the page says
	@tests/newcomer.sh

test: $(READY) ## run the tests, then those that touch checkpoints again in the strict msgpack mode
	$(BIN)/pytest -n 2 --dist loadfile
	LANGGRAPH_STRICT_MSGPACK=true $(BIN)/pytest -m checkpoint

browser: $(READY) ## test the inspector in a real browser, which is installed where it is missing and may be
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
		echo "There is no Chromium, and it cannot be installed here: the browser tests are skipped."
	$(BIN)/pytest -m browser

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
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .langgraph_api .hypothesis dist site

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@echo "Setting up $(VENV) with the pinned versions: a minute or two, only this once."
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python "$(PYTHON)" $(VENV) && \
		uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev]'; \
	else \
		$(PYTHON) -m venv $(VENV) && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'; \
	fi
	@touch $@
