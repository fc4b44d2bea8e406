#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Makes headers and libraries with which the front end can be linked for FreeBSD:
# this system's headers, and shared objects that only define the libraries'
# names. An unknown name is therefore an error of the link. The result cannot be
# run.
#
# Usage: scripts/freebsd-libraries.sh MACHINE DIRECTORY
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
machine=$1
directory=$2

multiarch=$(gcc -print-multiarch)
fresh=$(mktemp -d "$directory.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
mkdir "$fresh/include"
for header in hiredis http_parser.h jansson.h jansson_config.h sodium.h sodium; do
  for place in /usr/include "/usr/include/$multiarch"; do
    [[ -e $place/$header ]] && cp -r "$place/$header" "$fresh/include/"
  done
done
for library in http_parser hiredis jansson sodium; do
  nm --defined-only --extern-only "$(gcc -print-file-name="lib$library.a")" 2>/dev/null |
    awk 'NF == 3 && $2 ~ /[TWDRB]/ && $3 ~ /^[A-Za-z_][A-Za-z0-9_]*$/ { print "void " $3 "(void);\nvoid " $3 "(void) {}" }' |
    awk '!seen[$0]++' >"$fresh/$library.c"
  [[ -s $fresh/$library.c ]] || { echo "freebsd-libraries: lib$library.a defines nothing" >&2 && exit 1; }
  "$scripts/zig-cc.sh" "$machine" -shared -w -fno-builtin -o "$fresh/lib$library.so" "$fresh/$library.c"
done
rm -rf "$directory"
mv "$fresh" "$directory"
trap - EXIT
