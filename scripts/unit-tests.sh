#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs test programs written with cmocka, several at a time because they wait most of
# the time, and prints how many tests passed. After a failure, it shows the program's
# output and begins no other program.
#
# Usage: scripts/unit-tests.sh PROGRAM...
set -euo pipefail

logs=$(mktemp -d -t unit-tests.XXXXXXXX)
trap 'rm -rf "$logs"' EXIT

# run LOGS PROGRAM: xargs begins no other program after status 255.
run() {
  local log status=0
  log=$(mktemp -p "$1")
  "$2" >"$log" 2>&1 || status=$?
  [[ $status -ne 0 ]] || grep -q '^\[  PASSED  \]' "$log" || status='0, but no number of tests'
  [[ $status == 0 ]] || {
    { cat "$log" && echo "unit-tests: $2 failed with status $status"; } >&2
    exit 255
  }
}
export -f run

printf '%s\0' "$@" |
  xargs -0 -n 1 -P $((2 * $(nproc))) bash -c 'run "$@"' run "$logs" ||
  exit 1
passed=$(cat "$logs"/* | awk '$2 == "PASSED" { passed += $4 } END { print passed }')
echo "$passed tests of $# programs passed"
