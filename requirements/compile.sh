#!/bin/sh
# Resolve pyproject.toml to the two lock files, with hashes and no addresses. Needs `uv` (`pip install uv`).
set -eu
cd "$(dirname "$0")/.."
lock() { uv pip compile pyproject.toml --generate-hashes --no-annotate --no-header --universal --no-strip-extras --python-version 3.11 --quiet "$@"; }
lock --output-file requirements/run.txt
lock --all-extras --group test --group docs --output-file requirements/test.txt
