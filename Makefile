# SPDX-License-Identifier: BSD-2-Clause
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# How much the demo does: smoke, quick, standard, paper.
SIZE ?= quick
# KEEP=1 leaves the demo running until Ctrl-C.
KEEP ?=

PYTHON := .venv/bin/python
GO_MODULES := monitor devcluster
# Programs for FreeBSD are looked at as such, here too.
FREEBSD_GO_MODULES := monitor freebsd/init
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
STAMPS := build/stamps
JAVA_SOURCES := $(shell find syse/java -path '*/target' -prune -o -type f -print 2>/dev/null)

# CI=true (as CI services set it) makes a skipped test a failure where a suite
# can tell; see CONTRIBUTING.md.
export CI ?=

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\n  SIZE=smoke|quick|standard|paper and KEEP=1 apply to demo.\n'

.PHONY: setup
setup: ## Check tool chains, install missing packages, make the Python environment
	@scripts/setup.sh

.PHONY: build
build: build-image ## Build everything into build/

.PHONY: build-go
build-go: setup
	@mkdir -p build/bin
	@go build -C monitor -o ../build/bin/shai ./cmd/shai

.PHONY: build-devcluster
build-devcluster: setup
	@scripts/devcluster.sh

.PHONY: build-runtime
build-runtime: setup
	@$(MAKE) -C runtime all

# The front end links libshai, so it comes after it.
.PHONY: build-frontend
build-frontend: build-runtime
	@$(MAKE) -C syse/frontend all

# What a member of a pool is installed from.
.PHONY: build-image
build-image: build-go build-runtime build-frontend build/syse/syse.jar
	@scripts/image.sh build/images/default

build/syse/syse.jar: $(JAVA_SOURCES) | setup
	@scripts/maven.sh -DskipTests package
	@touch $@

# Compiled, and linked but for the module, whose symbols only a kernel has.
.PHONY: freebsd
freebsd: setup ## Cross-build module objects, libshai, front end and monitor for FreeBSD
	@$(MAKE) -C kernel freebsd
	@$(MAKE) -C freebsd programs
	@$(MAKE) -C runtime freebsd
	@$(MAKE) -C syse/frontend freebsd
	GOOS=freebsd GOARCH=amd64 CGO_ENABLED=0 go build -C monitor -o ../build/freebsd/x86_64/shai ./cmd/shai
	GOOS=freebsd GOARCH=arm64 CGO_ENABLED=0 go build -C monitor -o ../build/freebsd/aarch64/shai ./cmd/shai

.PHONY: demo
demo: build ## The main job: Sys-E under enforcement, measured (SIZE=quick, KEEP=1)
	@exec $(PYTHON) -m demo --size $(SIZE) $(if $(KEEP),--keep)

# The devcluster's tests run a program that Go's cache of results does not see.
.PHONY: test
test: build ## Run every test of every language
	@scripts/suites.sh test \
	  monitor 'scripts/go-test.sh monitor' \
	  devcluster 'scripts/go-test.sh devcluster -count=1 -timeout=30m ./...' \
	  runtime '$(MAKE) -C runtime test' \
	  kernel '$(MAKE) -C kernel test' \
	  syse-frontend '$(MAKE) -C syse/frontend test' \
	  syse-java 'scripts/maven.sh test' \
	  python '$(PYTHON) -m pytest --numprocesses 2 --dist loadfile'

.PHONY: check
check: build ## Run formatters and linters of every language
	@scripts/suites.sh check \
	  gofmt 'unformatted=$$(gofmt -l $(GO_MODULES)); test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }' \
	  go-vet 'for module in $(GO_MODULES); do go vet -C $$module ./...; done' \
	  go-vet-freebsd 'for module in $(FREEBSD_GO_MODULES); do GOOS=freebsd CGO_ENABLED=0 go vet -C $$module ./...; done' \
	  staticcheck 'for module in $(GO_MODULES); do go run -C $$module $(STATICCHECK) ./...; done' \
	  runtime '$(MAKE) -C runtime check' \
	  kernel '$(MAKE) -C kernel check' \
	  freebsd-format '$(MAKE) -C freebsd check' \
	  freebsd '$(MAKE) freebsd' \
	  syse-frontend '$(MAKE) -C syse/frontend check' \
	  syse-java 'scripts/maven.sh -DskipTests verify' \
	  ruff '$(PYTHON) -m ruff check .' \
	  ruff-format '$(PYTHON) -m ruff format --check .' \
	  mypy '$(PYTHON) -m mypy' \
	  imports 'PYTHONPATH=operator .venv/bin/lint-imports' \
	  shellcheck 'git ls-files -z "*.sh" .ci/run | xargs -0 shellcheck' \
	  yamllint '$(PYTHON) -m yamllint --strict .' \
	  ansible-lint 'scripts/ansible-lint.sh' \
	  crds '$(PYTHON) -m crds.generate --check'

.PHONY: lock
lock: ## Pin the Python packages anew from requirements.in (needs uv)
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --output-file requirements.lock requirements.in

.PHONY: clean
clean: ## Remove what was built and measured (keeps .venv)
	rm -rf build out
	$(MAKE) -C runtime clean
	$(MAKE) -C kernel clean
	$(MAKE) -C freebsd clean
	$(MAKE) -C syse/frontend clean
	rm -rf syse/java/target
