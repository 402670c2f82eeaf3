# Every target makes .venv by itself. Needs make and one Python of those that requirements.lock has wheels for.
#   make demo    the whole tour on an embedded stack
#   make test    lint, types, architecture and every ring of tests but live and chaos
#   make check   lint and types alone
#   make stories DIR=FOLDER   the cases and stories of the contracts in a folder of yours
#   make live    against real servers that nobody here wrote
#   make chaos   SIGKILLs, restarts, a lying provider
#   make bench   measure, against peers too, and write the tables of docs/performance.md
#   make cover   the rings again, with full branch coverage of domain/ and workflows/ demanded
#   make lock    write requirements.lock after a change of pyproject.toml; what still fits stays
#   make clean   remove what these targets made; .sakshi/ holds evidence and stays
# PYTHON=/path/to/python names the Python; WORKERS=n the number of test processes.

SHELL = /bin/sh
PYTHON =
# One more than there are cores, which are two: much of a test is waiting for servers.
WORKERS = 3
# A file at a time, as they stand in the folders: those with few and long tests come in between and not at the end.
SPREAD = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
UV = uv==0.13.9
RUN = .venv/bin/python

# Sets $python to the first that requirements.lock has wheels for, or says what is missing.
LOOK = $(if $(PYTHON),"$(PYTHON)",python3 python3.13 python3.12 python3.11 python3.14)
FITS = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))
FIND = for python in $(LOOK) none; do "$$python" -c '$(FITS)' >/dev/null 2>&1 && break; done; \
  if [ "$$python" = none ]; then \
    echo 'No Python from 3.11 to 3.14 found. Looked at: $(LOOK).' >&2; \
    echo 'Install one, or name it: make $(firstword $(MAKECMDGOALS)) PYTHON=/path/to/python3.12' >&2; exit 2; \
  fi

.PHONY: demo test check stories live chaos bench cover lock clean venv

demo: venv
	@$(RUN) starter.py demo

# The closing line of pytest is the last thing that is printed.
test: check
	@$(RUN) -m pytest -q $(SPREAD)

check: venv
	@$(RUN) -m ruff check --quiet .
	@$(RUN) -m ruff format --check --quiet . || { echo "run: $(RUN) -m ruff format" >&2; exit 1; }
	@$(RUN) -m pyright --warnings

stories: venv
	@test -n '$(DIR)' || { echo 'Name the folder of contracts: make stories DIR=FOLDER' >&2; exit 2; }
	@STORIES_IN='$(DIR)' $(RUN) -m pytest -q tests/providers/test_library.py

live: venv
	@$(RUN) -m pytest -q -m live tests/live

chaos: venv
	@$(RUN) -m pytest -q -m chaos tests/chaos

bench: venv
	@$(RUN) -m benchmarks.report

cover: venv
	@$(RUN) -m pytest -q $(SPREAD) --cov --cov-report=term

lock:
	@$(FIND); test -x .venv-tools/bin/python || "$$python" -m venv .venv-tools
	@.venv-tools/bin/python -m pip install --quiet --disable-pip-version-check '$(UV)'
	@.venv-tools/bin/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet -o requirements.lock

clean:
	rm -rf .venv .venv-tools .venv-live .venv.lock .pytest_cache .ruff_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# .ci/venv.py does nothing if .venv is whole and of this lock.
venv:
	@$(FIND); exec "$$python" .ci/venv.py $(if $(PYTHON),--this,)
