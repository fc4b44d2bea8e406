#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# PROVIDE: shai_vm
# REQUIRE: NETWORKING FILESYSTEMS devfs
# KEYWORD: shutdown
#
# Virtual machines of pools. `service shai_vm start NAME...` starts those named, without names all; a machine is a link
# in shai_vm_machines to its directory.

# shellcheck disable=SC1091 # FreeBSD's
. /etc/rc.subr

# shellcheck disable=SC2034 # rc.subr reads these
{
  name=shai_vm
  desc="Virtual machines of Shai's pools"
  rcvar=shai_vm_enable
  start_cmd=shai_vm_start
  stop_cmd=shai_vm_stop
  status_cmd=shai_vm_status
  extra_commands=status
  required_modules="vmm nmdm if_bridge if_tuntap"
}

load_rc_config $name
: "${shai_vm_enable:=NO}"
: "${shai_vm_machines:=/usr/local/etc/shai-vm}"
: "${shai_vm_stop_seconds:=180}"
# init(8) ends an orderly shutdown after so many seconds; rcshutdown_timeout in /etc/rc.conf ends it a little earlier.
SHUTDOWN_SECONDS=300

all() {
  for machine in "$shai_vm_machines"/*; do
    [ ! -L "$machine" ] || echo "${machine##*/}"
  done
}

# The lock is the supervisor's. Where it can be had, nobody runs the machine.
runs() {
  ! lockf -ks -t 0 "$shai_vm_machines/$1/run.lock" true
}

# Prints the process of a machine's supervisor. The number in run.pid may be that of an earlier run, which somebody else
# has now.
supervisor() {
  process=$(cat "$shai_vm_machines/$1/run.pid" 2>/dev/null) || return 1
  case $(ps -ww -o command= -p "$process") in
    *"/vm.sh $shai_vm_machines/$1") echo "$process" ;;
    *) return 1 ;;
  esac
}

# Has a machine powered off, once: a second signal would be another press of its button. A supervisor that has just
# started has not written its number yet.
power_off() {
  case $asked in *" $1 "*) return ;; esac
  if process=$(supervisor "$1"); then
    kill "$process" && asked="$asked$1 "
  fi
}

shai_vm_start() {
  if [ "$(sysctl -n kern.init_shutdown_timeout)" -lt "$SHUTDOWN_SECONDS" ]; then
    sysctl kern.init_shutdown_timeout="$SHUTDOWN_SECONDS" >/dev/null
  fi
  # shellcheck disable=SC2046 # one word a machine
  [ $# -gt 0 ] || set -- $(all)
  for machine in "$@"; do
    directory=$shai_vm_machines/$machine
    [ -e "$directory/settings" ] || { echo "$directory is no virtual machine" >&2 && return 1; }
    if runs "$machine"; then
      echo "$machine is running"
      continue
    fi
    /usr/sbin/daemon -f -o "$directory/supervisor.log" \
      lockf -ks -t 0 "$directory/run.lock" sh /usr/local/libexec/shai/vm.sh "$directory"
  done
}

shai_vm_stop() {
  # shellcheck disable=SC2046 # one word a machine
  [ $# -gt 0 ] || set -- $(all)
  asked=' '
  for machine in "$@"; do
    ! runs "$machine" || power_off "$machine"
  done
  for machine in "$@"; do
    left=$shai_vm_stop_seconds
    while runs "$machine"; do
      power_off "$machine"
      left=$((left - 1))
      [ "$left" -gt 0 ] || { echo "$machine does not stop" >&2 && return 1; }
      sleep 1
    done
  done
}

shai_vm_status() {
  # shellcheck disable=SC2046 # one word a machine
  [ $# -gt 0 ] || set -- $(all)
  code=0
  for machine in "$@"; do
    if runs "$machine"; then
      echo "$machine is running"
    else
      echo "$machine is not running: $(cat "$shai_vm_machines/$machine/state" 2>/dev/null)"
      code=1
    fi
  done
  return "$code"
}

run_rc_command "$@"
