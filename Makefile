# Developer entry points. Everything lives in .venv/ and build/; see CONTRIBUTING.md.
SHELL := bash
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
BIN := $(abspath $(VENV))/bin
JOBS ?= $(shell nproc)
STAMPS := $(VENV)/.stamps
CMAKE := $(BIN)/cmake -G Ninja -DCMAKE_MAKE_PROGRAM=$(BIN)/ninja -DPython_EXECUTABLE=$(BIN)/python
NINJA := $(BIN)/ninja -j $(JOBS)
PIP := $(PY) -m pip install --quiet --disable-pip-version-check -c requirements/build.txt
CXX_SOURCES = $(shell find csrc tests -name '*.cc' -o -name '*.h')
TORCH_FREE = $(wildcard csrc/pjrt/*.cc csrc/stablehlo/*.cc csrc/ir/*.cc csrc/lowering/*.cc)

.PHONY: build demo test lint format bench aot fuzz models docs soak conformance sanitize tidy clean
.DELETE_ON_ERROR:

build: build/build.ninja
	@$(NINJA) -C build --quiet
	@$(PY) scripts/link_venv.py

build/build.ninja: | $(STAMPS)/build
	@$(CMAKE) -S . -B build -DCMAKE_BUILD_TYPE=Release >build-configure.log \
	  || { cat build-configure.log; exit 1; }
	@rm -f build-configure.log

# The environments: one stamp a requirements file, so that nothing is asked of pip when nothing changed.
$(VENV)/bin/pip:
	@scripts/check_machine.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)

$(STAMPS)/%: requirements/%.txt | $(VENV)/bin/pip
	@mkdir -p $(STAMPS)
	$(PIP) -r $<
	@touch $@

$(STAMPS)/no-deps: requirements/no-deps.txt | $(VENV)/bin/pip
	@mkdir -p $(STAMPS)
	$(PIP) --no-deps -r $<
	@touch $@

# JAX is a peer in benchmarks and brings its own XLA: an environment of its own.
$(STAMPS)/jax: requirements/jax.txt | $(VENV)/bin/pip
	@mkdir -p $(STAMPS)
	$(PYTHON) -m venv $(VENV)/jax
	$(VENV)/jax/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

demo: build $(STAMPS)/demo $(STAMPS)/no-deps
	@$(PY) -m examples.demo $(ARGS)

test: build $(STAMPS)/test $(STAMPS)/demo $(STAMPS)/no-deps
	@$(BIN)/ctest --test-dir build --output-on-failure -j $(JOBS)
	@$(PY) -m pytest -q tests $(ARGS)

bench: build $(STAMPS)/test $(STAMPS)/jax
	@$(PY) -m benchmarks $(ARGS)

aot: build $(STAMPS)/test
	@$(PY) -m tests.aot $(ARGS)

fuzz: build $(STAMPS)/test
	@$(PY) -m tests.fuzz $(ARGS)

models: build $(STAMPS)/test
	@$(PY) -m tests.models $(ARGS)

soak: build $(STAMPS)/test
	@$(PY) -m tests.soak $(ARGS)

docs: build
	@$(PY) scripts/operator_page.py

conformance: build $(STAMPS)/test
	@$(PY) -m tests.conformance $(ARGS)

lint: $(STAMPS)/build $(STAMPS)/lint tidy
	@$(BIN)/clang-format --dry-run --Werror $(CXX_SOURCES)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(STAMPS)/build $(STAMPS)/lint
	@$(BIN)/clang-format -i $(CXX_SOURCES)
	@$(BIN)/ruff format .

# The torch-free libraries, one stamp a file: clang-tidy is slow and its answer depends on the sources alone.
TIDY := $(TORCH_FREE:%=build-tidy/%.ok)
tidy: $(TIDY)
build-tidy/%.ok: % .clang-tidy $(wildcard csrc/pjrt/*.h csrc/stablehlo/*.h csrc/ir/*.h csrc/lowering/*.h) \
                 | build/build.ninja $(STAMPS)/lint
	@mkdir -p $(@D)
	@$(BIN)/clang-tidy --quiet -p build $< 2>&1 | { grep -v 'warnings generated' || true; }; \
	  exit $${PIPESTATUS[0]}
	@touch $@

# The torch-free libraries and their tests under the address, undefined-behaviour and thread sanitizers.
sanitize: export LSAN_OPTIONS = suppressions=$(CURDIR)/tests/cpp/lsan.supp
sanitize: $(STAMPS)/build
	@for kind in asan:address,undefined tsan:thread; do \
	  dir=build-$${kind%%:*}; \
	  $(CMAKE) -S . -B $$dir -DTORCH_TPU_WITH_TORCH=OFF -DTORCH_TPU_SANITIZE=$${kind#*:} >/dev/null \
	    && $(NINJA) -C $$dir --quiet \
	    && $(BIN)/ctest --test-dir $$dir --output-on-failure -j $(JOBS) || exit 1; \
	done

clean:
	rm -rf build build-asan build-tsan build-tidy torch_tpu/_C.*.so
