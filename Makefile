# Everything that a developer or an operator of one machine does. `make` alone lists it.

# Any Python from 3.11 on; the first of these that is one, unless you name yours: make PYTHON=…
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
PORT ?= 8000
BIN := .venv/bin
INSTALLED := .venv/.installed
# Tests and checks have services of their own, so that a running demo is not disturbed. Their many
# processes may keep what they compile, even where the environment says otherwise.
IN_TEST_HOME := KONSTRUCT_HOME="$(CURDIR)/.konstruct/test" PYTHONDONTWRITEBYTECODE=

.DEFAULT_GOAL := help
.PHONY: help setup demo run stop migrate test pictures lint format

help: ## what there is
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name text; do \
		printf '  make %-8s %s\n' "$$name" "$$text"; done

setup: $(INSTALLED) ## .venv with everything that is needed (done by the others too)

$(INSTALLED): requirements/base.txt requirements/dev.txt
	@test -n "$(PYTHON)" || { echo "Konstruct needs Python 3.11 or newer: install it, or make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Installing into .venv: a few minutes, this once."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@touch $@

demo: setup ## two tenants, a conversation, questions about it; then the server on PORT, until Ctrl-C
	@exec $(BIN)/python manage.py demo --port $(PORT)

run: setup ## migrate, then web on PORT with worker and beat, until Ctrl-C
	@exec $(BIN)/python manage.py serve --port $(PORT)

stop: ## stop what runs of this checkout: server, Postgres, Valkey
	@test ! -x $(BIN)/python || exec $(BIN)/python -m konstruct.embedded stop

migrate: setup ## bring all schemas up to date
	@exec $(BIN)/python manage.py migrate

test: lint ## all checks, then all tests with coverage
	$(IN_TEST_HOME) $(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
		-p tests.coverage_plugin

pictures: setup ## every page of the admin in a browser, into docs/images
	mkdir -p docs/images
	KONSTRUCT_PICTURES="$(CURDIR)/docs/images" $(IN_TEST_HOME) $(BIN)/python -m pytest tests/browser/test_pages.py

lint: setup ## formatting, style, types, layers, migrations, system checks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@# In a cache that is older than a change to the models, django-stubs does not find the managers.
	$(IN_TEST_HOME) $(BIN)/python -m mypy || { rm -rf .mypy_cache && $(IN_TEST_HOME) $(BIN)/python -m mypy; }
	$(BIN)/lint-imports
	$(IN_TEST_HOME) $(BIN)/python manage.py makemigrations --check --dry-run
	$(IN_TEST_HOME) $(BIN)/python manage.py check

format: setup ## mend formatting and what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
