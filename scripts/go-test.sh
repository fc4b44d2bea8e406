#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Go's tests with a closing line that counts tests, failures and skips. In CI
# (CI=true) a skipped test is a failure: there everything has to be there.
#
# Usage: scripts/go-test.sh [GO TEST ARGUMENT...]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly GOTESTSUM=gotest.tools/gotestsum@v1.13.0
readonly RECORD=build/go-test.json
[[ $# -gt 0 ]] || set -- ./...

mkdir -p build
go run -C monitor "$GOTESTSUM" --format pkgname-and-test-fails --hide-summary output \
  --jsonfile "$PWD/$RECORD" -- "$@"

# A package without tests is a skip without a test's name.
if [[ ${CI:-} == true ]] && grep '"Action":"skip"' "$RECORD" | grep '"Test":'; then
  echo "go-test: the tests above were skipped; what they need is missing on this machine" >&2
  exit 1
fi
