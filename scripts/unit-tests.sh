#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs test programs written with cmocka, several at a time because they wait most of
# the time, and prints how many tests passed. After a failure, it shows the program's
# output and begins no other program.
#
# Usage: scripts/unit-tests.sh PROGRAM...
set -euo pipefail

[[ $# -gt 0 ]] || {
  echo "usage: unit-tests.sh PROGRAM..." >&2
  exit 2
}
logs=$(mktemp -d -t unit-tests.XXXXXXXX)
trap 'rm -rf "$logs"' EXIT

# run LOGS PROGRAM: a file says that one has failed. After a status of 255, xargs would not
# wait for those that still run.
run() {
  local log status=0
  [[ ! -e $1/failed ]] || return 1
  log=$(mktemp -p "$1")
  "$2" >"$log" 2>&1 || status=$?
  [[ $status -ne 0 ]] || grep -q '^\[  PASSED  \]' "$log" || status='0, but no number of tests'
  [[ $status == 0 ]] || {
    touch "$1/failed"
    cat "$log" <(echo "unit-tests: $2 failed with status $status") >&2
    return 1
  }
}
export -f run

printf '%s\0' "$@" |
  xargs -0 -n 1 -P $((2 * $(nproc))) bash -c 'run "$@"' run "$logs" ||
  exit 1
passed=$(cat "$logs"/* | awk '$2 == "PASSED" { passed += $4 } END { print passed }')
echo "$passed tests of $# programs passed"
