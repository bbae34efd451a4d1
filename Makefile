# Two commands that do all of their own set-up: `make demo` and `make test`.
# They need Python 3.11 or later and cargo; without cargo the slower reference evaluator takes over.

PYTHON ?= python3
BIN := .venv/bin
CARGO := cargo
VERSION := $(shell sed -n 's/__version__ = "\(.*\)"/\1/p' version.py)
SEED := $(shell date +%Y%m%d)
CRATES := engine/core importers/core partition/choice/least/core
SOURCES := pyproject.toml Cargo.toml Cargo.lock $(shell find $(CRATES) -name Cargo.toml -o -path "*/src/*.rs")

.PHONY: test test-crates test-python test-newest test-nightly test-versions test-clusters lint demo bench docs screenshots vscode clean

# Without the compiled files of Python, each of the processes that tests start would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# With -j2, as in CI, what runs on one core only has company.
test: lint test-crates test-python test-newest

test-crates: .venv/ready
	+@if command -v $(CARGO) >/dev/null; then $(CARGO) test --workspace --no-default-features --quiet; \
	else echo "left out: the tests of the crates, for there is no $(CARGO)"; fi

test-python: .venv/ready
	SHARDLOG_REQUIRE_CORE=$$(command -v $(CARGO)) $(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist worksteal

# What depends on the line of JAX, with the newest one.
test-newest: .venv/ready
	$(BIN)/python -m shardlog.tests.versions --newest

# All that make test leaves out for its time, and 25 times as many random cases: those of the day, or of SEED.
# XLA optimises as it does for users.
test-nightly: .venv/ready
	XLA_FLAGS= SHARDLOG_SEED=$(SEED) $(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist worksteal \
	-m "not bench and not install" --hypothesis-profile=nightly --hypothesis-seed=$(SEED)

test-versions: .venv/ready
	$(BIN)/python -m shardlog.tests.versions

# Sweeps on local clusters of Ray and Dask, in an environment of their own.
test-clusters: .venv/ready
	test -d .venvs/clusters || $(PYTHON) -m venv .venvs/clusters
	.venvs/clusters/bin/python -m pip install --quiet --editable '.[test,ray,dask]'
	.venvs/clusters/bin/python -m pytest -q tests/sweeping

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m shardlog fmt --check rules
	MYPYPATH=.venv/root $(BIN)/mypy -p shardlog
	+@if command -v $(CARGO) >/dev/null; then \
	$(CARGO) fmt --all --check && $(CARGO) clippy --workspace --all-targets --quiet -- -D warnings; fi

demo: .venv/ready
	$(BIN)/python -m shardlog.tests.bench.demo

bench: .venv/ready
	$(BIN)/python -m shardlog.tests.bench.bench
	$(BIN)/python -m shardlog.tests.bench.partitioning
	$(BIN)/python -m shardlog.tests.bench.datalog
	$(BIN)/python -m shardlog.tests.bench.commands
	$(BIN)/python -m shardlog.tests.bench.size
	$(BIN)/python -m shardlog.tests.bench.dispatch
	$(BIN)/python -m pytest -q -m bench

# The documentation as a site, in build/site; runs the notebooks. Warnings are errors.
docs: .venvs/docs/ready
	rm -rf .venvs/docs/root && mkdir -p .venvs/docs/root/shardlog
	ln -s $(addprefix ../../../../,$(wildcard *)) .venvs/docs/root/shardlog/ # without environments, which link back
	JAX_PLATFORMS=cpu NO_MKDOCS_2_WARNING=1 .venvs/docs/bin/python -m mkdocs build --strict --site-dir build/site

.venvs/docs/ready: pyproject.toml
	$(PYTHON) -m venv .venvs/docs
	.venvs/docs/bin/python -m pip install --quiet --editable '.[docs]'
	touch $@

# The screenshots of the report in docs/pictures; needs Chromium and its driver.
screenshots: .venv/ready
	$(BIN)/python -m shardlog.tests.screenshots

# The extension for VS Code, built and tested; needs Node.js.
vscode: .venv/ready
	cd editors/vscode && npm ci --ignore-scripts && npm run package -- $(VERSION) --no-update-package-json
	cd editors/vscode && SHARDLOG="$(CURDIR)/$(BIN)/shardlog" npm test

# The link gives the repository root the name of the package, whatever the clone is called.
.venv/ready: $(SOURCES)
	test -d .venv || $(PYTHON) -m venv .venv
	mkdir -p .venv/root && ln -sfn ../.. .venv/root/shardlog
	$(BIN)/python -m pip install --quiet --editable '.[test,dev]'
	touch $@

clean:
	rm -rf .venv .venvs build target editors/vscode/node_modules editors/vscode/dist $(CRATES:core=_core*.so)
