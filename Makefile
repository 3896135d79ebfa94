# The commands of this repository; meson does the building.
# `make demo` and `make test` need nothing but gcc, make and python3: they install what is missing.

MESON  := .venv/bin/meson
PYTHON := .venv/bin/python
# meson calls ninja too; two versions of it would rebuild everything in turn.
export NINJA := $(CURDIR)/.venv/bin/ninja

.PHONY: help all setup build asan demo test check bench docs fuzz soak release format clean

all: build

# What there is to make.
help:
	@echo 'make build     the program build/roost, and the package importable in .venv'
	@echo 'make demo      build, then check, plan and run examples'
	@echo 'make test      every test, plain and under sanitizers'
	@echo 'make check     format, analysers, layers, a second compiler'
	@echo 'make format    format C and Python'
	@echo 'make docs      the documentation as a site in build/site'
	@echo 'make bench     what things cost'
	@echo 'make soak      the long tests'
	@echo 'make fuzz      the parsers, SECONDS=600 each'
	@echo 'make release   the archives in dist/'
	@echo 'make clean     remove what was built'

setup:
	@tools/setup

build: setup
	@test -f build/build.ninja || $(MESON) setup build --buildtype=debugoptimized -Dwerror=$(if $(CI),true,false) > /dev/null
	@$(NINJA) --quiet -C build
	@printf '#!/bin/sh\n# What `build/roost` asks Ray with: the Python beside the program.\nexec "%s/.venv/bin/python3" "$$@"\n' '$(CURDIR)' > build/python3 && chmod +x build/python3

asan: setup
	@test -f build-asan/build.ninja || $(MESON) setup build-asan --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false -Dbenches=false > /dev/null
	@$(NINJA) --quiet -C build-asan

# Check and plan an example, as in the README.
demo: build
	@tools/demo

# Every test, in the plain build and under ASan and UBSan. Ends with "N passed, N failed". A test that fails may be tried once
# more; tests/unsteady says when.
test: build asan
	@tools/setup docs
	@$(PYTHON) tools/run-tests

# What takes a reader's place: format, analysers, the layer rule, a second compiler.
check: build
	@tools/check

bench: build
	@tools/setup bench
	@$(PYTHON) bench/run

# The documentation as a static site: open build/site/index.html. A warning is an error.
docs: build
	@tools/setup docs
	@tools/reference
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet --strict
	@echo "open build/site/index.html"

# Ten minutes a target by default: make fuzz SECONDS=60
fuzz: setup
	@tools/fuzz $(or $(SECONDS),600)

# The long versions of what `make test` samples. Nothing is tried again.
soak: build asan
	@tools/setup docs
	@ROOST_SOAK=1 $(PYTHON) tools/run-tests

# What is published: dist/ with the source archive and a wheel, tried in a new environment.
release: setup
	@tools/setup release
	@$(PYTHON) tools/release

format: setup
	@git ls-files '*.c' '*.h' | xargs .venv/bin/clang-format -i
	@.venv/bin/ruff check --quiet --fix python tests/python && .venv/bin/ruff format --quiet python tests/python

clean:
	rm -rf build build-asan build-clang build-fuzz dist
