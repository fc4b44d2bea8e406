#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# PROVIDE: shai_grow
# REQUIRE: FILESYSTEMS
# BEFORE: securelevel
# KEYWORD: nojail
#
# Grows the root file system when the machine's disks have another size than at the last time. FreeBSD's growfs does
# this at the first boot only, and a raised security level keeps partitions and file systems as they are, so it happens
# when the machine starts.

# shellcheck disable=SC1091 # FreeBSD's
. /etc/rc.subr

# shellcheck disable=SC2034 # rc.subr reads these
{
  name=shai_grow
  desc="Growth of the root file system with the disk"
  rcvar=
  start_cmd=shai_grow_start
  stop_cmd=:
}

NOTED=/var/db/shai-disks

# The first and the third column are the disk and its size in bytes.
disks() {
  for disk in $(sysctl -n kern.disks); do
    case $disk in cd*) ;; *) diskinfo "$disk" | cut -f 1,3 ;; esac
  done
}

root_blocks() {
  df -k / | awk 'NR == 2 { print $2 }'
}

shai_grow_start() {
  found=$(disks | sort)
  [ "$found" != "$(cat "$NOTED" 2>/dev/null)" ] || return 0
  [ "$(sysctl -n kern.securelevel)" -le 0 ] || return 0
  before=$(root_blocks)
  service growfs onestart >&2 || return 1
  echo "$found" >"$NOTED"
  [ "$(root_blocks)" = "$before" ] || echo "grown to $(root_blocks) KiB"
}

load_rc_config $name
run_rc_command "$1"
