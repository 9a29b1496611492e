# Needs python3 (3.11 or later) with venv, and make; everything else comes from requirements.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CLIENTS := .clients/letta0/.done .clients/letta1/.done
CLIENT_EXTRAS := pytest requests python-dotenv
PYTEST_ARGS ?=
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile
# Tests of several processes on PostgreSQL are part of `test`; these are others that must hold there too.
SCALE := tests/stories tests/batches/test_lease.py \
	tests/agents/test_approvals_decide.py tests/agents/test_approvals_beside.py \
	$(patsubst %,tests/survival/test_%.py,kills worker_kills takeover interrupted_tools drain lease limits_of_runs writer unclear_commits)

.DEFAULT_GOAL := help
.PHONY: help run serve test test-scale check format bench clients axe clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(VENV)/.runtime ## install what is missing and serve with demonstration data
	$(BIN)/python manage.py serve --demo

serve: $(VENV)/.runtime ## the same without demonstration data
	$(BIN)/python manage.py serve

test: $(VENV)/.development $(CLIENTS) axe ## every test
	$(PYTEST) $(PYTEST_ARGS)

test-scale: $(VENV)/.development ## those of what processes share, on the PostgreSQL of DATABASE_URL and with REDIS_URL
	@[ -n "$$DATABASE_URL" ] && [ -n "$$REDIS_URL" ] || { echo "DATABASE_URL and REDIS_URL must be set" >&2; exit 2; }
	$(PYTEST) -m "not postgresql and not slow" $(SCALE) $(PYTEST_ARGS)

check: $(VENV)/.development ## format, lint, types, import rules, templates, migrations
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy .
	$(BIN)/lint-imports --no-cache
	$(BIN)/djlint templates --check --quiet
	$(BIN)/djlint templates --lint --quiet
	$(BIN)/python manage.py check --fail-level WARNING
	$(BIN)/python manage.py makemigrations --check --dry-run

format: $(VENV)/.development ## bring code and templates into form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/djlint templates --reformat --quiet

bench: $(VENV)/.development ## measure; writes bench.json
	$(BIN)/python -m tests.bench

clients: $(CLIENTS) ## virtual environments with both generations of the client SDK

# The accessibility rules that the browser tests read; they skip by name without it.
axe:
	@[ -e node_modules/axe-core/axe.min.js ] || ! command -v npm >/dev/null || \
		npm install --no-save --no-audit --no-fund --silent axe-core@4.14.1 || \
		echo "axe-core could not be installed" >&2

clean: ## remove what make made; data under var/ stays
	rm -rf $(VENV) .clients .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# The runtime part ends at the line "# development"; both marks follow requirements.txt.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements.txt | $(VENV)/bin/python
	sed '/^# development/,$$d' requirements.txt > $(VENV)/runtime.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(VENV)/runtime.txt
	@touch $@

$(VENV)/.development: requirements.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@ $(VENV)/.runtime

.clients/letta0/.done: VERSION := 0.1.324
.clients/letta1/.done: VERSION := 1.12.1
.clients/%/.done: Makefile
	$(PYTHON) -m venv .clients/$*
	.clients/$*/bin/python -m pip install --quiet --disable-pip-version-check letta-client==$(VERSION) $(CLIENT_EXTRAS)
	@touch $@
