#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs suites one after the other, lets each print what it prints, goes on after
# a failure, and ends with a summary. Exits 1 when any suite failed.
#
# Usage: scripts/suites.sh TITLE NAME COMMAND [NAME COMMAND]...
#   COMMAND is one argument, run by bash from the top folder.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
title=$1
shift
summary=()
failed=0

while [[ $# -ge 2 ]]; do
  name=$1 command=$2
  shift 2
  printf '\n=== %s: %s\n' "$title" "$name"
  started=$SECONDS
  if bash -euo pipefail -c "$command" </dev/null; then
    verdict=passed
  else
    verdict="FAILED (status $?): $command"
    failed=$((failed + 1))
  fi
  summary+=("$(printf '%-24s %4d s  %s' "$name" $((SECONDS - started)) "$verdict")")
done

printf '\n=== %s: summary\n' "$title"
printf '%s\n' "${summary[@]}"
printf '%s: %d of %d suites failed\n' "$title" "$failed" "${#summary[@]}"
[[ $failed -eq 0 ]]
