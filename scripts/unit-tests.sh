#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs test programs written with cmocka and prints how many tests passed. After
# a failure, it shows the program's output and runs no other program.
#
# Usage: scripts/unit-tests.sh PROGRAM...
set -euo pipefail

log=$(mktemp -t unit-tests.XXXXXXXX)
trap 'rm -f "$log"' EXIT
passed=0
for program in "$@"; do
  "$program" >"$log" 2>&1 || {
    status=$?
    cat "$log" >&2
    echo "unit-tests: $program failed with status $status" >&2
    exit 1
  }
  count=$(awk '$2 == "PASSED" { print $4 }' "$log")
  passed=$((passed + ${count:?$program printed no number of tests}))
done
echo "$passed tests of $# programs passed"
