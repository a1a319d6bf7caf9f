#!/usr/bin/env bash
# A newcomer's path: `make run`, then the commands of the tutorial in order, each ending as the page says.
# In this checkout, or with --clone in a fresh clone of it, which sets up an environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --clone ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    git clone --quiet . "$folder"
    cd "$folder"
fi
make --no-print-directory run
.venv/bin/pytest -m newcomer tests/test_docs.py
