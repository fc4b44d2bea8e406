#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# seed.sh JAIL DATA SOURCE: makes the directory DATA in a jail, a copy of SOURCE; without SOURCE it is empty. What is
# incomplete has another name.
set -eu

jail=$1 data=$2 source=$3
whole=$(mktemp)
trap 'rm -f "$whole"' EXIT

jexec "$jail" rm -rf "$data.new"
jexec "$jail" mkdir -m 0755 "$data.new"
if [ -n "$source" ]; then
  [ -d "$source" ] || {
    echo "data source $source is not a directory in this virtual machine: put the data into the members' image, and name it" \
      "\$(IMAGE)/PATH, or use a golden image that has it" >&2
    exit 1
  }
  { tar -C "$source" -cf - . && echo yes >"$whole"; } | jexec "$jail" tar -C "$data.new" -xpf -
  [ -s "$whole" ] || { echo "data source $source cannot be read whole" >&2 && exit 1; }
fi
jexec "$jail" mv "$data.new" "$data"
