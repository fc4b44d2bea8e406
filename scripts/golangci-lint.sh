#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Lints a Go module with .golangci.yaml, for an operating system. Builds the linter when it is first used.
#
# Usage: scripts/golangci-lint.sh MODULE [GOOS]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly VERSION=v2.15.0
readonly FOLDER=$PWD/build/tools/golangci-lint-$VERSION
[[ -f ${1:-}/go.mod ]] || {
  sed -n '6s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

[[ -x $FOLDER/golangci-lint ]] ||
  GOBIN=$FOLDER go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$VERSION"
# These two also examine all that a module is built of. For Kubernetes and other policy engines
# that takes many minutes, and the modules built of them run in tests and benchmarks only.
less=()
case $1 in devcluster | monitor/policybench) less=(--disable staticcheck --disable govet) ;; esac

cd "$1"
GOOS=${2:-$(go env GOOS)} CGO_ENABLED=0 "$FOLDER/golangci-lint" run "${less[@]}" ./...
