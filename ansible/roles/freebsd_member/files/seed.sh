#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# seed.sh JAIL DATA SOURCE IMAGE: makes the directory DATA in a jail, a copy of SOURCE; without SOURCE it is empty. With
# IMAGE, no link may lead SOURCE out of it. What is incomplete has another name.
set -eu

jail=$1 data=$2 source=$3 image=$4
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
  [ -z "$image" ] || case $(realpath "$source")/ in
    "$(realpath "$image")"/*) ;;
    *)
      echo "data source $source leads out of the image, through a symbolic link to $(realpath "$source"): put the data" \
        "themselves into the members' image, or name a directory of the virtual machine" >&2
      exit 1
      ;;
  esac
  { tar -C "$source" -cf - . && echo yes >"$whole"; } | jexec "$jail" tar -C "$data.new" -xpf -
  [ -s "$whole" ] || { echo "data source $source cannot be read whole" >&2 && exit 1; }
fi
jexec "$jail" mv "$data.new" "$data"
