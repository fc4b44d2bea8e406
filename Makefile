# SPDX-License-Identifier: BSD-2-Clause
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:

# Size of the demo: smoke, quick, standard, paper.
SIZE ?= quick
# KEEP=1 leaves the demo running until Ctrl-C.
KEEP ?=
# The measurement of bench, or the scenario of scenario.
NAME ?=
# Further options of scenario.
SCENARIO ?=
# The address of the Grafana into which dashboards are imported.
GRAFANA ?=
# Further options of bench-session.
SESSION ?=
# Further options of bench-operator.
SCALE ?=
# Further options of bench-policy.
POLICY ?=
# Further options of bench-analysis.
ANALYSIS ?=
# V=1 shows each command and its output.
export V ?=
# CI=true (as CI services set it) makes a skipped test a failure in suites that
# report skips; see CONTRIBUTING.md.
export CI ?=
# Programs of the tests start many times. Where nothing may be written beside sources, each start compiles all of Python's again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON := .venv/bin/python
GO_MODULES := monitor monitor/policybench devcluster
# Checks of programs for FreeBSD use its operating system, here too.
FREEBSD_GO_MODULES := monitor freebsd/init
# It has the version of the packages.
FREEBSD_PORT := freebsd/ports/sysutils/shai/Makefile
UV := build/uv/bin/uv
UV_VERSION := 0.13.8

STEP := @scripts/step.sh
# files FOLDER: the sources of a program.
files = $(shell find $(1) -name target -prune -o -type f ! -name '*_test.go' -print)
# part FOLDER,TARGET,STEP: makes the target with the folder's own makefile, which
# knows what is up to date.
part = @$(MAKE) -q -C $(1) $(2) >/dev/null 2>&1 || scripts/step.sh '$(3)' $(MAKE) -C $(1) $(2)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\n  SIZE=smoke|quick|standard|paper and KEEP=1 apply to demo; V=1 shows every command and its output.\n'

.PHONY: setup
setup: ## Check tool chains, install missing packages, make the Python environment
	$(STEP) setup scripts/setup.sh

.PHONY: build
build: build-image build-devcluster build/bin/kubectl-shai ## Build everything into build/

# The image from which a pool's members are installed.
.PHONY: build-image
build-image: build/bin/shai build-supervisor build-runtime build-frontend build-engine build/syse/syse.jar
	@scripts/image.sh build/images/default

# A plugin of kubectl: it is found when its directory is in PATH.
build/bin/kubectl-shai: $(call files,monitor) | setup
	$(STEP) kubectl-shai go build -C monitor -o ../$@ ./cmd/kubectl-shai
	@touch $@

build/bin/shai: $(call files,monitor) | setup
	$(STEP) shai go build -C monitor -o ../$@ ./cmd/shai
	@touch $@

.PHONY: build-devcluster
build-devcluster: build/bin/devcluster

build/bin/devcluster: $(call files,devcluster) scripts/devcluster.sh | setup
	$(STEP) devcluster scripts/devcluster.sh

.PHONY: build-runtime
build-runtime: | setup
	$(call part,runtime,all,libshai)

# The monitor looks for it beside its own program.
.PHONY: build-supervisor
build-supervisor: | setup
	$(call part,supervisor,all,shai-supervisor)
	@cmp -s build/supervisor/shai-supervisor build/bin/shai-supervisor || \
	  install -D build/supervisor/shai-supervisor build/bin/shai-supervisor

# The front end and the fast engine link libshai, so they come after it.
.PHONY: build-frontend
build-frontend: build-runtime
	$(call part,syse/frontend,all,syse-frontend)

.PHONY: build-engine
build-engine: build-runtime
	$(call part,syse/engine,all,syse-engine)

build/syse/syse.jar: $(call files,syse/java) scripts/maven.sh | setup
	$(STEP) syse.jar scripts/maven.sh -DskipTests package
	@touch $@

# Packages of the pages: charts, and what tests of accessibility run in the browser.
dashboards/web/node_modules/.package-lock.json: dashboards/web/package-lock.json | setup
	$(STEP) 'packages of the pages' npm --prefix dashboards/web ci --ignore-scripts

# The module is compiled but not linked, because only a kernel has its symbols.
.PHONY: freebsd
freebsd: build/freebsd/x86_64/shai build/freebsd/aarch64/shai ## Cross-build module objects, libshai, front end, engine and monitor for FreeBSD
	$(call part,kernel,freebsd,module objects for FreeBSD)
	$(call part,freebsd,programs,programs of the bare kernel)
	$(call part,runtime,freebsd,libshai for FreeBSD)
	$(call part,syse/frontend,freebsd,syse-frontend for FreeBSD)
	$(call part,syse/engine,freebsd,syse-engine for FreeBSD)

build/freebsd/x86_64/shai: GOARCH := amd64
build/freebsd/aarch64/shai: GOARCH := arm64
build/freebsd/%/shai: $(call files,monitor) $(FREEBSD_PORT) | setup
	$(STEP) 'shai for FreeBSD on $(GOARCH)' \
	  env GOOS=freebsd GOARCH=$(GOARCH) CGO_ENABLED=0 go build -C monitor -trimpath \
	    -ldflags='-s -X shai.dev/monitor/internal/edition.release=$(shell awk '$$1 == "PORTVERSION=" { print $$2 }' $(FREEBSD_PORT))' -o ../$@ ./cmd/shai
	@touch $@

# The schema of Debian's package, which is not installed.
build/tools/cloud-init/user-data.json: scripts/cloud-init-schema.sh | setup
	$(STEP) "cloud-init's schema" scripts/cloud-init-schema.sh $@

.PHONY: images
images: setup build/tools/cloud-init/user-data.json ## Check the images of virtual machines: descriptions, first boot, seeds
	@$(PYTHON) -m images check
	@$(PYTHON) -m pytest images

.PHONY: freebsd-package
freebsd-package: freebsd ## Make packages for FreeBSD: build/freebsd/x86_64/shai-VERSION.pkg, and for aarch64
	@for machine in x86_64 aarch64; do \
	  SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
	  scripts/step.sh "package for FreeBSD on $$machine" $(PYTHON) -m freebsd.packaging $$machine; done

.PHONY: demo
demo: build ## The main job: Sys-E under enforcement, measured (SIZE=quick, KEEP=1)
	@exec $(PYTHON) -m demo --size $(SIZE) $(if $(KEEP),--keep)

.PHONY: bench
bench: ## List the measurements, or run one (NAME=...)
	@scripts/bench.sh $(NAME)

.PHONY: scenario
scenario: ## List scenarios of load, or run one on the running demo (NAME=spike SCENARIO='...')
	@exec $(PYTHON) -m loadgen scenario $(NAME) $(SCENARIO)

# The result of bench-session is out/bench/session.json; SESSION has options, see
# --help of the command.
.PHONY: bench-session
bench-session: build-image ## Measure what a session costs (SESSION='--rounds 3 ...')
	@exec $(PYTHON) -m loadgen sessions --output out/bench $(SESSION)

# The result is out/bench/ingest/ingest.json; INGEST has options, see --help of the command.
.PHONY: bench-ingest
bench-ingest: build-image ## Measure searches while documents come in (INGEST='--rounds 3 ...')
	@exec $(PYTHON) -m loadgen ingest --output out/bench/ingest $(INGEST)

# The results are out/bench/policy.json and policy.html, its chart. A module of its own, so
# that the product does not depend on the engines that it is compared with.
.PHONY: bench-policy
bench-policy: | setup ## Measure decisions of policies beside OPA and Cedar (POLICY='-rounds 10 ...')
	@go build -C monitor/policybench -o ../../build/policybench .
	@exec build/policybench -output out/bench $(POLICY)

# The result is out/bench/operator.json; SCALE has options, see --help of the command.
.PHONY: bench-operator
bench-operator: build ## Measure the operator with many definitions and members (SCALE='--slope ...')
	@exec $(PYTHON) -m testing.scaling $(SCALE)

# The result is out/bench/analysis.json, with a picture beside it; ANALYSIS has options, see
# --help of the command.
.PHONY: bench-analysis
bench-analysis: setup ## Measure the offline analysis and the registration of documents (ANALYSIS='--size quick ...')
	@exec $(PYTHON) -m testing.analysing $(ANALYSIS)

# The devcluster's tests run a program that Go's test cache does not track. Neither
# they nor the suites of C and Java use all processors. Suites call make by its name:
# make -n executes lines that contain its variable. So -j does not reach them.
.PHONY: test
test: build dashboards/web/node_modules/.package-lock.json build/tools/cloud-init/user-data.json ## Run every test of every language
	@scripts/suites.sh test \
	  --show monitor 'scripts/go-test.sh monitor -timeout=30m ./...' \
	  --beside --show devcluster 'scripts/go-test.sh devcluster -count=1 -timeout=30m ./...' \
	  --keep passed runtime 'make -C runtime test' \
	  --keep passed supervisor 'make -C supervisor test' \
	  --keep 'passed|^Done' kernel 'make -C kernel test' \
	  --keep 'passed|^Done' syse-frontend 'make -C syse/frontend test' \
	  --keep passed syse-engine 'make -C syse/engine test' \
	  --keep 'Tests run' syse-java 'scripts/maven.sh test' \
	  --show python '$(PYTHON) -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder'

.PHONY: lint-go
lint-go: ## Run golangci-lint on every Go module; it needs nothing but Go
	@set -e; for module in $(GO_MODULES); do scripts/golangci-lint.sh $$module; done; \
	for module in $(FREEBSD_GO_MODULES); do scripts/golangci-lint.sh $$module freebsd; done

.PHONY: check
check: setup dashboards/web/node_modules/.package-lock.json ## Run formatters and linters of every language
	@scripts/suites.sh check \
	  gofmt 'unformatted=$$(gofmt -l $(GO_MODULES)); test -z "$$unformatted" || { echo "not formatted: $$unformatted"; exit 1; }' \
	  golangci-lint 'make lint-go' \
	  --beside mypy '$(PYTHON) -m mypy' \
	  --beside ansible-lint 'scripts/ansible-lint.sh' \
	  deadcode 'scripts/deadcode.sh' \
	  runtime 'make -C runtime check' \
	  supervisor 'make -C supervisor check' \
	  kernel 'make -C kernel check' \
	  freebsd-format 'make -C freebsd check' \
	  freebsd 'make freebsd-package' \
	  manual 'mandoc -T lint -W warning monitor/man/*' \
	  syse-frontend 'make -C syse/frontend check' \
	  syse-engine 'make -C syse/engine check' \
	  syse-java 'scripts/maven.sh -DskipTests verify' \
	  ruff '$(PYTHON) -m ruff check .' \
	  ruff-format '$(PYTHON) -m ruff format --check .' \
	  vulture '$(PYTHON) -m vulture $$(git ls-files "*.py" | grep -vE "(^|/)(tests|testing)/") && $(PYTHON) -m vulture $$(git ls-files "*.py")' \
	  imports 'PYTHONPATH=operator .venv/bin/lint-imports' \
	  shellcheck 'git ls-files -z "*.sh" .ci/run | xargs -0 shellcheck' \
	  shellcheck-freebsd 'shellcheck --shell=sh --exclude=SC1091,SC2034,SC3043 freebsd/ports/sysutils/*/files/*.in' \
	  yamllint '$(PYTHON) -m yamllint --strict .' \
	  crds '$(PYTHON) -m crds.generate --check' \
	  deploy '$(PYTHON) -m deploy.generate --check' \
	  images '$(PYTHON) -m images check' \
	  dashboards '$(PYTHON) -m dashboards generate --check' \
	  charts 'node dashboards/web/build.mjs --check' \
	  metrics '$(PYTHON) -m dashboards.reference --check'

$(UV):
	$(STEP) uv bash -c 'python3 -m venv build/uv && build/uv/bin/python -m pip --quiet install uv==$(UV_VERSION)'

.PHONY: dashboards
dashboards: setup dashboards/web/node_modules/.package-lock.json ## Write the Grafana dashboards again, or import them (GRAFANA=http://..., token in GRAFANA_TOKEN)
ifdef GRAFANA
	@$(PYTHON) -m dashboards import --grafana '$(GRAFANA)'
else
	@$(PYTHON) -m dashboards generate
	@$(PYTHON) -m dashboards.reference
	@node dashboards/web/build.mjs
endif

.PHONY: sbom
sbom: setup ## Write software bills of materials into out/sbom (CycloneDX)
	$(STEP) sbom scripts/sbom.sh out/sbom

.PHONY: lock
lock: $(UV) ## Pin the Python packages again from requirements.in
	$(STEP) requirements.lock $(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --output-file requirements.lock requirements.in
	$(STEP) deploy/sbom/requirements.lock $(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-header --output-file deploy/sbom/requirements.lock deploy/sbom/requirements.in

.PHONY: clean
clean: ## Remove build and measurement results (keeps .venv)
	@rm -rf build out syse/java/target
