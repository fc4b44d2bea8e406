#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs suites one after the other, each as a step (scripts/step.sh), goes on after
# a failure, and ends with a summary. Exits 1 when any suite failed.
#
# Usage: scripts/suites.sh TITLE {[--beside] [--show | --keep PATTERN] NAME COMMAND}...
#   COMMAND   is one argument, run by bash from the top folder
#   --beside  begins the next suites without waiting for the end of this one, which
#             prints its output after them
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
title=$1
shift
begun=$SECONDS
verdicts=$(mktemp -d -t suites.XXXXXXXX) || exit 1
beside=()
# A suite beside the others has a process group of its own, which Ctrl-C does not reach.
end() {
  local group
  for group in "${beside[@]}"; do kill -- "-$group" 2>/dev/null; done
  wait
  rm -rf "$verdicts"
}
trap end EXIT

# suite NUMBER NAME COMMAND [OPTION...]: runs a suite and records its line of the summary.
suite() {
  local number=$1 name=$2 command=$3 started=$SECONDS verdict=FAILED
  shift 3
  scripts/step.sh "$@" "$title: $name" bash -euo pipefail -c "$command" && verdict=passed
  printf '%-24s %5d s  %s\n' "$name" $((SECONDS - started)) "$verdict" >"$verdicts/$number"
}

count=0
while [[ $# -ge 2 ]]; do
  options=() waits=true
  [[ $1 != --beside ]] || { waits=false && shift; }
  case $1 in
    --show) options=("$1") && shift ;;
    --keep) options=("$1" "$2") && shift 2 ;;
  esac
  count=$((count + 1))
  if $waits; then
    suite "$count" "$1" "$2" "${options[@]}"
  else
    echo "=== $title: $1 runs beside the next suites"
    set -m
    suite "$count" "$1" "$2" "${options[@]}" >"$verdicts/output-$count" 2>&1 </dev/null &
    beside+=($!)
    set +m
  fi
  shift 2
done
wait
beside=()
cat "$verdicts"/output-* 2>/dev/null

printf '\n=== %s: summary\n' "$title"
failed=0
for number in $(seq "$count"); do
  cat "$verdicts/$number" || echo "suite $number did not end"
  grep -q ' passed$' "$verdicts/$number" || failed=$((failed + 1))
done
printf '%s: %d of %d suites failed, %d s\n' "$title" "$failed" "$count" $((SECONDS - begun))
[[ $failed -eq 0 ]]
