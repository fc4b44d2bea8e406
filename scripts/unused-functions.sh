#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Fails when a library or program has a function that nothing in it calls and that it
# does not export. The link command names objects that were compiled without inlining
# (-O0 -ffunction-sections), each function in a section of its own, and no output. What
# the sources after --used-by mention counts as called: those of another system.
#
# Usage: scripts/unused-functions.sh [--used-by SOURCE]... LINK...
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

elsewhere=()
while [[ ${1:-} == --used-by ]]; do
  elsewhere+=("$2")
  shift 2
done
objects=()
for argument in "$@"; do
  [[ $argument != *.o ]] || objects+=("$argument")
done
[[ ${#objects[@]} -gt 0 ]] || { echo 'unused-functions: the link command names no objects' >&2; exit 2; }

kept=()
if [[ ${#elsewhere[@]} -gt 0 ]]; then
  nm --defined-only --extern-only "${objects[@]}" | awk 'NF == 3 { print $3 }' | sort -u >"$work/defined"
  grep -ohE '[A-Za-z_][A-Za-z0-9_]*' "${elsewhere[@]}" | sort -u | comm -12 - "$work/defined" >"$work/kept"
  mapfile -t kept < <(sed 's/^/-Wl,--undefined=/' "$work/kept")
fi
if ! "$@" "${kept[@]}" -Wl,--gc-sections,--print-gc-sections -o "$work/linked" 2>"$work/said"; then
  cat "$work/said" >&2
  exit 1
fi
# Members of archives stand in brackets, and the compiler's own objects have no such sections.
sed -n "s/.*removing unused section '\.text\.\([A-Za-z0-9_.]*\)' in file '\([^()']*\)'.*/\2: \1 is called by nothing/p" "$work/said" >"$work/found"
if [[ -s $work/found ]]; then
  cat "$work/found"
  echo 'unused-functions: remove them, or move them into the tests that call them' >&2
  exit 1
fi
echo "unused functions: none"
