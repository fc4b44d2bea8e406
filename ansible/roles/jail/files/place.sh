#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# place.sh JAIL ROOT PATH: makes a directory in a jail, where something is mounted when the jail starts, and prints `made
# PATH`. The jail's own programs can have put links into its files. So a jail that runs makes the directory itself; in
# one that does not run nobody can exchange a directory meanwhile, and a link is refused.
set -eu

jail=$1 root=$2 path=$3

if jls -j "$jail" >/dev/null 2>&1; then
  # shellcheck disable=SC2016 # the jail's shell expands it
  exec jexec "$jail" /bin/sh -c '[ -d "$1" ] || { mkdir -p "$1" && echo "made $1"; }' sh "$path"
fi
place=$root made=''
left=${path#/}
while [ -n "$left" ]; do
  part=${left%%/*}
  case $left in */*) left=${left#*/} ;; *) left='' ;; esac
  [ -n "$part" ] || continue
  place=$place/$part
  if [ -L "$place" ] || [ "$part" = .. ]; then
    echo "$place is a link or leads upwards, so nothing is made behind it: delete it (jail $jail does not need it), or" \
      "delete the jail" >&2
    exit 1
  fi
  [ -d "$place" ] || { mkdir "$place" && made=yes; }
done
[ -z "$made" ] || echo "made $path"
