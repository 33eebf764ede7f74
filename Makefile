# The front door. `make` lists what there is; every target first installs what it needs into $(VENV).
#
#   PYTHON=…   the Python (3.11 or newer) that the environment is made with
#   VENV=…     where the environment is
#   ARGS=…     more arguments for the program that the target runs: make test ARGS="-k replay"

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=

RUN  := $(VENV)/bin/
PIP  := $(RUN)python -m pip --quiet --disable-pip-version-check
CORE := $(VENV)/.core-installed
DEV  := $(VENV)/.dev-installed
DOCS := $(VENV)/.docs-installed

.PHONY: help demo test quick prove test-real test-phoenix test-mlflow test-providers test-frameworks test-ray case-study test-stores test-browser pictures screenshots lint house format bench docs reference clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(CORE)  ## record an example run, show, check, reproduce, replay, diff and debrief it; no key, no network
	$(RUN)playhead demo $(ARGS)

# Three workers on two cores: while one waits for a process, another one works.
test: $(DEV)  ## run the tests; of campaigns and bounds of time, a sample
	PYTHONHASHSEED=0 $(RUN)python -m pytest -n 3 --dist worksteal $(ARGS)

quick: $(DEV)  ## run the tests that start no process and wait for nothing
	PYTHONHASHSEED=0 $(RUN)python -m pytest -n 2 --dist worksteal -m "not (slow or real or stores or phoenix or mlflow or providers or frameworks or browser or ray)" $(ARGS)

prove: $(DEV)  ## run the tests with every campaign whole and every bound of time asserted; wants a quiet machine
	PROVE=1 PYTHONHASHSEED=0 $(RUN)python -m pytest -n 2 --dist worksteal $(ARGS)
	$(RUN)python -m tests.findings.replay_oracle 5000

test-real: $(DEV)  ## run the tests that need a real model, on a server that you have started (docs/guides/real-models.md); an hour's work
	$(RUN)python -m pytest -m real $(ARGS)

test-frameworks: build/frameworks/.ready  ## record agents of LangGraph, OpenAI Agents and pydantic-ai; they are installed into build/
	build/frameworks/bin/python -m pytest -m frameworks tests/instrument $(ARGS)

test-stores: build/stores/.ready  ## query runs over S3's protocol, from a server on this machine; it is installed into build/
	build/stores/bin/python -m pytest -m stores tests/cli/test_sql.py $(ARGS)

test-browser: $(DEV)  ## open reports in the Chromium of this machine, and hold them to their bounds of time
	$(PIP) install --group browser
	PROVE=1 $(RUN)python -m pytest -m browser tests/browser $(ARGS)

test-ray: $(DEV)  ## replay on a local Ray cluster; Ray is installed (0.2 GB)
	$(PIP) install --editable ".[ray]"
	$(RUN)python -m pytest -m ray tests/replay $(ARGS)

case-study: $(DEV)  ## ask for a verdict on three changes of 30 runs of a real model, on a server that you have started
	$(RUN)python -m examples.many_runs.tickets

test-phoenix: $(DEV) build/phoenix/.installed  ## send spans to a real Phoenix; it is installed into build/ (0.9 GB)
	$(RUN)python -m pytest -m phoenix tests/backends $(ARGS)

test-mlflow: $(DEV) build/mlflow/.installed  ## send spans to a real tracking server of MLflow; it is installed into build/ (0.9 GB)
	$(RUN)python -m pytest -m mlflow tests/backends $(ARGS)

test-providers: $(DEV) build/providers/.installed  ## run programs that trace with the packages of Phoenix, Langfuse and Logfire; installed into build/ (0.1 GB)
	$(RUN)python -m pytest -m providers tests/providers $(ARGS)

pictures: $(DEV)  ## take the pictures of reports for the docs, in the Chromium of this machine
	$(PIP) install --group browser
	$(RUN)python docs/pictures.py

screenshots: $(DEV) build/phoenix/.installed build/mlflow/.installed  ## take the pictures of docs/images, in the Chromium of this machine
	PICTURES=$(CURDIR)/docs/images $(RUN)python -m pytest -m "phoenix or mlflow" tests/backends/test_pictures.py $(ARGS)

lint: $(DEV)  ## check style, format, types, that imports point one way, and that each room is within its budget
	$(RUN)ruff check .
	$(RUN)ruff format --check .
	$(RUN)mypy $(wildcard playhead tests benchmarks examples traces docs/commands.py docs/schemas.py docs/pictures.py)
	$(RUN)lint-imports --no-logo
	$(RUN)python -m tests.house

house: $(CORE)  ## print the code lines of each room beside its budget
	$(RUN)python -m tests.house

format: $(DEV)  ## format the code and mend what can be mended by itself
	$(RUN)ruff check --fix-only .
	$(RUN)ruff format .

bench: $(CORE)  ## measure; prints ratios against a floor measured in the same run
	$(RUN)python -m benchmarks $(ARGS)

docs: $(DOCS) reference  ## build the documentation site into build/docs; a warning is an error
	$(RUN)sphinx-build --quiet --fail-on-warning --keep-going --jobs 2 docs build/docs

reference: $(CORE)  ## write into docs/ what is made of the code: the schemas, and the reference of the command line
	$(RUN)python docs/schemas.py trace > docs/.trace-format.schema.json
	@mv docs/.trace-format.schema.json docs/trace-format.schema.json
	$(RUN)python docs/schemas.py debrief > docs/.debrief.schema.json
	@mv docs/.debrief.schema.json docs/debrief.schema.json
	$(RUN)python docs/commands.py > docs/.cli.md
	@mv docs/.cli.md docs/cli.md

clean:  ## remove the environment and everything that was built
	@test ! -e $(VENV) || test -f $(VENV)/pyvenv.cfg || { echo "$(VENV) is no virtual environment: not removed" >&2; exit 1; }
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Backends, each in an environment of its own: they are large, and want other versions of what we use. (The tests ask the
# APIs of these versions.)
build/phoenix/.installed: PACKAGE := arize-phoenix==20.26.1
build/mlflow/.installed: PACKAGE := mlflow==3.17.2
build/providers/.installed: PACKAGE := arize-phoenix-otel==0.17.2 langfuse==5.0.4 logfire==5.4.0 --editable .[otel]
build/%/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --quiet --disable-pip-version-check install $(PACKAGE)
	@touch $@

build/frameworks/.ready build/stores/.ready: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --quiet --disable-pip-version-check install --upgrade "pip>=25.1"
	$(@D)/bin/python -m pip --quiet --disable-pip-version-check install --editable .[all] --group test --group $(notdir $(@D))
	@touch $@

# What an end user gets: the package and its dependencies, nothing else.
$(CORE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Playhead needs Python 3.11 or newer. Name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
	$(PIP) install --editable .
	@touch $@

# What we work with: all extras, the tests' and the checks' tools. (pip reads dependency groups since 25.1.)
$(DEV): $(CORE)
	$(PIP) install --editable ".[all]" --group dev
	@touch $@

# What builds the documentation site, and all extras, whose names it describes.
$(DOCS): $(CORE)
	$(PIP) install --editable ".[all]" --group docs
	@touch $@
