# What a developer runs. Tools come from .venv if `make setup` has made it, else from PATH.
.DEFAULT_GOAL := help
PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help setup check format test test-fast docs bench ci

help:  ## show this list
	@awk -F ':.*  ## ' '/^[a-z-]+:.*  ## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup:  ## make .venv with the package, editable, and all that a developer needs
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --editable '.[dev]'

check:  ## lint, whether tests are found, types, import contract, generated messages, the site: everything but the tests
	.ci/check

format:  ## mend what can be mended by itself: format, order of imports
	ruff check --fix .
	ruff format .

test:  ## all tests, five to six minutes on two processors
	pytest

test-fast:  ## the tests that are not slow by construction, one minute on two processors
	pytest -m "not slow"

docs:  ## the site and the API reference, into build/site
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict

bench:  ## how fast a skill's updates get to their reader
	python -m benchmarks.tool_stream

ci:  ## everything that a change must pass, from a clean clone
	.ci/run
