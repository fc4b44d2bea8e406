#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs suites one after the other, each as a step (scripts/step.sh), goes on after
# a failure, and ends with a summary. Exits 1 when any suite failed.
#
# Usage: scripts/suites.sh TITLE {[--show | --keep PATTERN] NAME COMMAND}...
#   COMMAND is one argument, run by bash from the top folder.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
title=$1
shift
summary=()
failed=0
begun=$SECONDS

while [[ $# -ge 2 ]]; do
  options=()
  case $1 in
    --show) options=("$1") && shift ;;
    --keep) options=("$1" "$2") && shift 2 ;;
  esac
  name=$1 command=$2
  shift 2
  started=$SECONDS
  if scripts/step.sh "${options[@]}" "$title: $name" bash -euo pipefail -c "$command"; then
    verdict=passed
  else
    verdict=FAILED
    failed=$((failed + 1))
  fi
  summary+=("$(printf '%-24s %5d s  %s' "$name" $((SECONDS - started)) "$verdict")")
done

printf '\n=== %s: summary\n' "$title"
printf '%s\n' "${summary[@]}"
printf '%s: %d of %d suites failed, %d s\n' "$title" "$failed" "${#summary[@]}" $((SECONDS - begun))
[[ $failed -eq 0 ]]
