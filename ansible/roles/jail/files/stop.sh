#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# stop.sh JAIL CONFIGURATION SECONDS: stops a jail, and takes away what it has left. A jail whose services do not end has
# its processes killed. A jail without processes may be dying for long, because of a connection or for reasons of the
# kernel's; another one can have its name, so it is waited for, but it holds up nothing.
set -eu

jail=$1 configuration=$2 seconds=$3
WAIT_SECONDS=30

fail() {
  echo "$*" >&2
  exit 1
}

lives() {
  jls -j "$jail" >/dev/null 2>&1
}

remains() {
  jls -d name | grep -qxF "$jail"
}

waits() {
  left=$WAIT_SECONDS
  while "$@"; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || return 1
    sleep 1
  done
}

setting() {
  sed -n "s/^ *$1 = \"\(.*\)\";\$/\1/p" "$configuration"
}

mounts() {
  mount -p | awk -v root="$(setting path)/" 'index($2, root) == 1 { print $2 }' | sort -r
}

# What the jail's own end takes away, unless it was killed.
clear_remains() {
  for place in $(mounts); do
    umount -f "$place" || fail "JailStuck: $place of jail $jail cannot be unmounted: see what uses it (fstat -f $place)"
    echo "unmounted $place"
  done
  rctl -r "jail:$jail" 2>/dev/null || true
  pair=$(setting vnet.interface)
  sh /usr/local/libexec/shai/epair.sh down "${pair%b}" "$jail"
}

if lives; then
  timeout "$seconds" jail -q -f "$configuration" -r "$jail" || echo "killing the processes of $jail"
  # Without the configuration, nothing in the jail is asked any more.
  ! lives || jail -q -R "$jail" || true
  waits lives || fail "JailStuck: jail $jail does not stop: see what runs in it (ps -J $jail)"
  waits remains || echo "$jail is still dying"
  echo "stopped $jail"
fi
clear_remains
