# Two commands do everything: `make plan` sets up and runs the main job, `make test` sets up and runs all tests.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
JOB    ?= examples/jobs/llama3-8b-sft.yaml
# installs that cannot reach a registry should say so within a minute, not hang
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: plan test test-full test-torch azurite check format lock bench docs clean

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV) || python3 -m venv $(VENV)

$(VENV)/run.stamp: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	$(PIP) --require-hashes -r requirements/run.txt
	$(PIP) --no-deps --editable .
	@touch $@

$(VENV)/test.stamp: requirements/test.txt tests/e2e/judges/package-lock.json $(VENV)/run.stamp
	$(PIP) --require-hashes -r requirements/test.txt
	@# an independent judge of policies; tests that ask it skip with a reason where it is not
	@if command -v npm >/dev/null; then mkdir -p $(VENV)/judges && cp tests/e2e/judges/package*.json $(VENV)/judges && \
	  npm ci --prefix $(VENV)/judges --silent --no-audit --no-fund || echo "iam-simulate was not installed: its tests will skip"; fi
	@touch $@

# the CPU build of torch where pip finds one (requirements/torch.txt)
$(VENV)/torch.stamp: requirements/torch.txt $(VENV)/test.stamp
	$(BIN)/python -m venv $(VENV)/torch
	$(VENV)/torch/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/torch.txt
	@touch $@

# Azure's emulator, which needs npm: tests of Azure's stores and signatures skip without it
$(VENV)/azurite.stamp: tests/emulators/azurite_npm/package-lock.json | $(VENV)/bin/python
	mkdir -p $(VENV)/azurite && cp tests/emulators/azurite_npm/package*.json $(VENV)/azurite
	npm ci --prefix $(VENV)/azurite --silent --no-audit --no-fund
	@touch $@

## set up and rank every way of running the example job, from the packaged prices; JOB=… for one of your own
plan: $(VENV)/run.stamp
	$(BIN)/skyplan plan $(JOB)

# on two cores: tests with a real Terraform mostly wait for it
WORKERS ?= 4

## everything CI runs: style, types, import direction, all tests
test: check
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

## the long sweeps too
test-full: check
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --full

## what jobs use, under the real libraries: torch, Transformers, Lightning
test-torch: $(VENV)/torch.stamp
	$(BIN)/python -m pytest tests/unit/job/test_frameworks.py "tests/e2e/test_runtime_crash.py::test_a_real_training_goes_on_as_if_nothing_had_happened"

azurite: $(VENV)/azurite.stamp

## style, types, import direction
check: $(VENV)/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(VENV)/test.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

## figures of the README; see benchmarks/
bench: $(VENV)/test.stamp
	$(BIN)/python benchmarks/figures.py

# the theme announces its end (2027-05-05) at each build; its own switch, since mkdocs.yml says so too
## the documentation as a site in .site/, without a warning or not at all
docs: $(VENV)/test.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

## resolve the lock files anew (needs uv)
lock:
	requirements/compile.sh

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
