# Each target makes the environment it needs; a machine with make and Python 3.11 or newer is enough.
PYTHON ?= python3
VENV := .venv
OLDEST := .venv-oldest
BIN := $(VENV)/bin
STAMP := .installed
MINUTES ?= 30

.PHONY: bench demo test check docs test-oldest conformance fuzz serve-docs pins clean
.DELETE_ON_ERROR:

demo: $(VENV)/$(STAMP)-demo  ## The tiny model on a real llama.cpp server: both requests, both prompts
	$(BIN)/oaicompat demo

test: $(VENV)/$(STAMP)-dev  ## The whole test suite
	$(BIN)/python -m pytest

check: $(VENV)/$(STAMP)-dev  ## ruff, mypy, import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/$(STAMP)-dev  ## The documentation; a warning is an error
	$(BIN)/mkdocs build --strict --quiet
	$(BIN)/towncrier build --draft --version next >/dev/null

test-oldest: $(OLDEST)/$(STAMP)-dev  ## The tests, with the oldest supported pydantic-ai and openai
	$(OLDEST)/bin/python -m pytest

conformance: $(VENV)/$(STAMP)-dev  ## The cases in the folder that OAICOMPAT_CORPUS names
	$(BIN)/python scripts/conformance.py

fuzz: $(VENV)/$(STAMP)-dev  ## The property tests with ever new inputs: make fuzz MINUTES=30
	$(BIN)/python scripts/fuzz.py --minutes $(MINUTES)

bench: $(VENV)/$(STAMP)-dev  ## CPU time beside pydantic-ai's own model, as ratios
	$(BIN)/python benchmarks/bench.py

serve-docs: $(VENV)/$(STAMP)-dev
	$(BIN)/mkdocs serve

pins: $(VENV)/$(STAMP)-dev  ## Take the newest versions and write them to constraints.txt
	$(BIN)/pip install --quiet --upgrade --upgrade-strategy eager -e '.[yaml,demo,testing]' --group test --group lint --group docs --group release
	(echo '# Versions that the tests, checks and docs were last run with. Update: make pins'; \
	  $(BIN)/pip freeze --exclude-editable | grep -v '^oaicompat') > constraints.txt

clean:
	rm -rf $(VENV) $(OLDEST) site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# pip 25.1 is the first that knows dependency groups.
$(VENV)/$(STAMP) $(OLDEST)/$(STAMP): $(MAKEFILE_LIST)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'oaicompat needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ...' >&2; exit 1; }
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	touch $@

$(VENV)/$(STAMP)-demo: $(VENV)/$(STAMP) pyproject.toml constraints.txt
	$(BIN)/pip install --quiet -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/$(STAMP)-dev: $(VENV)/$(STAMP) pyproject.toml constraints.txt
	$(BIN)/pip install --quiet -c constraints.txt -e '.[yaml,demo,testing]' \
	  --group test --group lint --group docs --group release
	touch $@

$(OLDEST)/$(STAMP)-dev: $(OLDEST)/$(STAMP) pyproject.toml constraints.txt constraints-oldest.txt
	grep -v -E '^(pydantic-ai-slim|pydantic-graph|openai)==' constraints.txt > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/pip install --quiet -c $(OLDEST)/constraints.txt -c constraints-oldest.txt -e '.[yaml,demo,testing]' --group test
	touch $@
