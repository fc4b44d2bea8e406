#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs one step of a build: prints one line with its time when it is done. The
# command and what it printed are shown when it fails, and always with V=1. On a
# terminal, a line says meanwhile how long it has run and what it printed last.
#
# Usage: scripts/step.sh [--show | --keep PATTERN] NAME COMMAND [ARGUMENT...]
#   --show  lets the command's output through as it comes
#   --keep  after a success, prints the lines that the extended regular expression
#           PATTERN matches
set -uo pipefail

usage() {
  sed -n '8,11s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

show=${V:-} keep=''
case ${1:-} in
  --show) show=1 && shift ;;
  --keep) [[ $# -ge 2 ]] || usage && keep=$2 && shift 2 ;;
esac
[[ $# -ge 2 ]] || usage
readonly name=$1
shift
started=${EPOCHREALTIME/[.,]/}

# took: prints the time since the start, in seconds.
took() {
  local tenths=$(((${EPOCHREALTIME/[.,]/} - started) / 100000))
  printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

# quoted ARGUMENT...: prints the arguments as a user would type them.
quoted() {
  local argument words=()
  for argument in "$@"; do
    [[ $argument =~ ^[A-Za-z0-9_./=:,@%+-]+$ ]] || argument=${argument@Q}
    words+=("$argument")
  done
  printf '%s' "${words[*]}"
}

report() { printf '%-32s %7s s%s\n' "$name" "$(took)" "${1:-}"; }

# progress LOG: shows the progress every second, in one line of the terminal.
progress() {
  local columns last
  while sleep 1; do
    columns=$(tput cols 2>/dev/null) || columns=80
    last=$(tail -c 1000 "$1" | tr '\r' '\n' | grep -v '^ *$' | tail -n 1 | tr -cd '[:print:]')
    last=$(printf '%-32s %7s s  %s' "$name" "$(took)" "$last")
    printf '\r%s\e[K' "${last:0:columns-1}"
  done
}

if [[ -n $show ]]; then
  printf '=== %s%s\n' "$name" "${V:+: $(quoted "$@")}"
  "$@" </dev/null
  status=$?
  if [[ $status -eq 0 ]]; then report; else report "  FAILED (status $status): $(quoted "$@")" >&2; fi
  exit $status
fi

log=$(mktemp -t step.XXXXXXXX) || exit 1
ticker=
erase() {
  [[ -n $ticker ]] || return
  kill "$ticker"
  wait "$ticker"
  printf '\r\e[K'
  ticker=
} 2>/dev/null
trap 'erase; rm -f "$log"' EXIT
if [[ -t 1 && ${TERM:-dumb} != dumb ]]; then
  progress "$log" &
  ticker=$!
fi

# In the foreground, so that Ctrl-C reaches it.
"$@" </dev/null >"$log" 2>&1
status=$?
erase
if [[ $status -eq 0 ]]; then
  report
  [[ -z $keep ]] || grep -E -- "$keep" "$log"
  exit 0
fi
{
  report "  FAILED (status $status): $(quoted "$@")"
  cat "$log"
} >&2
exit $status
