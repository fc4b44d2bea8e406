#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The tests of a Go module, a line that counts tests, failures and skips, and the
# ten slowest of them. In CI (CI=true) a skipped test is a failure: everything that
# tests need has to be present there.
#
# Usage: scripts/go-test.sh MODULE [GO TEST ARGUMENT...]
#   MODULE is the module's folder; without an argument all its packages are tested.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly GOTESTSUM=gotest.tools/gotestsum@v1.13.0
[[ -f ${1:-}/go.mod ]] || {
  sed -n '8,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
readonly MODULE=$1
readonly RECORD=build/go-test-$MODULE.json
shift
[[ $# -gt 0 ]] || set -- ./...

gotestsum() { go run -C "$MODULE" "$GOTESTSUM" "$@"; }

mkdir -p build
status=0
gotestsum --no-color --format pkgname-and-test-fails --hide-summary output --jsonfile "$PWD/$RECORD" -- "$@" || status=$?
echo "slowest tests:"
gotestsum tool slowest --num 10 --jsonfile "$PWD/$RECORD"
[[ $status -eq 0 ]] || exit "$status"

# go test reports a package without tests as a skip without a test's name.
if [[ ${CI:-} == true ]] && grep '"Action":"skip"' "$RECORD" | grep '"Test":'; then
  echo "go-test: the tests above were skipped, because this machine lacks what they need" >&2
  exit 1
fi
