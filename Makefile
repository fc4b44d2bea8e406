# SPDX-License-Identifier: BSD-2-Clause
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# How much the demo does: smoke, quick, standard, paper.
SIZE ?= quick
# KEEP=1 leaves the demo running until Ctrl-C.
KEEP ?=
# PORT=18640 moves the demo's front ends to other ports, four from there on.
PORT ?=

PYTHON := .venv/bin/python
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
STAMPS := build/stamps
JAVA_SOURCES := $(shell find syse/java -path '*/target' -prune -o -type f -print 2>/dev/null)

# CI=true (as CI services set it) makes a skipped test a failure where a suite
# can tell; see CONTRIBUTING.md.
export CI ?=

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\n  SIZE=smoke|quick|standard|paper and KEEP=1, PORT=N apply to demo.\n'

.PHONY: setup
setup: ## Check tool chains, install missing packages, make the Python environment
	@scripts/setup.sh

.PHONY: build
build: build-go build-runtime build-frontend build/syse/syse.jar ## Build everything into build/

.PHONY: build-go
build-go: setup
	@mkdir -p build/bin
	@go build -C monitor -o ../build/bin/shai ./cmd/shai

.PHONY: build-runtime
build-runtime: setup
	@$(MAKE) -C runtime all

# The front end links libshai, so it comes after it.
.PHONY: build-frontend
build-frontend: build-runtime
	@$(MAKE) -C syse/frontend all

build/syse/syse.jar: $(JAVA_SOURCES) | setup
	@scripts/maven.sh -DskipTests package
	@touch $@

.PHONY: demo
demo: build ## The main job: Sys-E under enforcement, measured (SIZE=quick, KEEP=1)
	@exec $(PYTHON) -m loadgen.demo --size $(SIZE) $(if $(KEEP),--keep) $(if $(PORT),--port $(PORT))

.PHONY: test
test: build ## Run every test of every language
	@scripts/suites.sh test \
	  monitor 'scripts/go-test.sh' \
	  runtime '$(MAKE) -C runtime test' \
	  syse-frontend '$(MAKE) -C syse/frontend test' \
	  syse-java 'scripts/maven.sh test' \
	  loadgen '$(PYTHON) -m pytest loadgen'

.PHONY: check
check: build ## Run formatters and linters of every language
	@scripts/suites.sh check \
	  gofmt 'unformatted=$$(gofmt -l monitor); test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }' \
	  go-vet 'go vet -C monitor ./...' \
	  staticcheck 'go run -C monitor $(STATICCHECK) ./...' \
	  runtime '$(MAKE) -C runtime check' \
	  syse-frontend '$(MAKE) -C syse/frontend check' \
	  syse-java 'scripts/maven.sh -DskipTests verify' \
	  ruff '$(PYTHON) -m ruff check .' \
	  ruff-format '$(PYTHON) -m ruff format --check .' \
	  mypy '$(PYTHON) -m mypy' \
	  shellcheck 'git ls-files -z "*.sh" .ci/run | xargs -0 shellcheck' \
	  yamllint '$(PYTHON) -m yamllint --strict .'

.PHONY: lock
lock: ## Pin the Python packages anew from requirements.in (needs uv)
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --output-file requirements.lock requirements.in

.PHONY: clean
clean: ## Remove what was built and measured (keeps .venv)
	rm -rf build out
	$(MAKE) -C runtime clean
	$(MAKE) -C syse/frontend clean
	rm -rf syse/java/target
