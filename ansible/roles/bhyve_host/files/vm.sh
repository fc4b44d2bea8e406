#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# vm.sh [--clear] DIRECTORY: runs the virtual machine of a directory until it is powered off, and again when it reboots
# or fails. --clear only removes what a machine that does not run has left in the kernel.
# The caller holds the lock run.lock, which ends with its process: a crash or another host name leaves no stale lock.
# SIGTERM powers the guest off; a guest that does not obey is killed.
#
# It reads bhyve.conf and `settings` (name, vmm, pool, bridge, bridge_address, uplink; one `key=value` a line), and
# writes state: `running`, `stopped`, or `failed` with the reason.
set -u

LIBEXEC=/usr/local/libexec/shai
MOST_FAULTS=5
PAUSE_SECONDS=10
POWER_OFF_SECONDS=90
WAIT_SECONDS=30
# A guest that has run for so long has not failed in a row.
GOOD_SECONDS=600
LOG_LIMIT=10485760
LOG_KEPT=1048576
LOG_SECONDS=60

stopping='' guest='' console='' limiter='' killer='' faults=0
name='' vmm='' pool='' bridge='' bridge_address='' uplink=''

say() {
  echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) $name: $*"
}

state() {
  echo "$*" >state.new && mv state.new state
  say "$*"
}

give_up() {
  state "failed $*"
  exit 1
}

read_settings() {
  while IFS='=' read -r key value; do
    case $key in
      name) name=$value ;;
      vmm) vmm=$value ;;
      pool) pool=$value ;;
      bridge) bridge=$value ;;
      bridge_address) bridge_address=$value ;;
      uplink) uplink=$value ;;
    esac
  done <settings
  [ -n "$name" ] && [ -n "$vmm" ] && [ -n "$bridge" ]
}

# Waits until a command fails.
until_not() {
  tries=$WAIT_SECONDS
  while "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || return 1
    sleep 1
  done
}

# bhyve gives itself another title when the guest starts.
guest_of_another_run() {
  pgrep -f "^bhyve(: | .* )$vmm\$"
}

# A bhyve whose supervisor was killed still runs; one that was killed leaves its machine in the kernel, and its tap.
clear_remains() {
  if left=$(guest_of_another_run); then
    say "ends process $left of an earlier run"
    # shellcheck disable=SC2086 # one word a process
    kill $left
    # shellcheck disable=SC2086
    until_not guest_of_another_run || kill -KILL $left
    until_not guest_of_another_run || give_up "process $left of an earlier run does not end"
  fi
  if [ -e "/dev/vmm/$vmm" ]; then
    bhyvectl --vm="$vmm" --destroy
    until_not test -e "/dev/vmm/$vmm" || give_up "/dev/vmm/$vmm stays after bhyvectl --destroy"
  fi
  for interface in $(ifconfig -g tap); do
    if ifconfig "$interface" | grep -qE "description: shai vm $name\$"; then
      ifconfig "$interface" destroy
    fi
  done
  clear_console_lock
}

# cu(1) leaves its lock when it is killed.
clear_console_lock() {
  lock=/var/spool/lock/LCK..nmdm${vmm}B
  if [ -e "$lock" ] && ! kill -0 "$(tr -cd 0-9 <"$lock")" 2>/dev/null; then
    rm -f "$lock"
  fi
}

# The device is opened once, because its settings are lost when it is closed. With echo, the guest would read what it
# wrote.
log_console() {
  (stty raw -echo && exec cat) <"/dev/nmdm${vmm}B" >>console.log 2>/dev/null &
  console=$!
}

# What a guest prints, and what bhyve says of it, would otherwise fill the host's storage. The logs stay open for
# appending, so they are emptied and not renamed.
limit_logs() {
  for log in console.log supervisor.log; do
    if [ -e "$log" ] && [ "$(wc -c <"$log")" -gt "$LOG_LIMIT" ]; then
      tail -c "$LOG_KEPT" "$log" >"$log.0"
      : >"$log"
    fi
  done
}

# Holds nothing that the supervisor's messages go to, and ends with its pause. One whose supervisor was killed ends, too.
limit_logs_often() {
  trap 'kill "$pause"; exit' TERM
  while kill -0 $$ 2>/dev/null; do
    limit_logs
    sleep "$LOG_SECONDS" &
    pause=$!
    wait "$pause"
  done
}

# Sets code to the exit status of a process. Signals interrupt `wait`.
wait_for() {
  while :; do
    wait "$1"
    code=$?
    kill -0 "$1" 2>/dev/null || return 0
  done
}

run_guest() {
  lockf -k /var/run/shai-bridge.lock sh "$LIBEXEC/bridge.sh" "$bridge" "$pool" "$bridge_address" "$uplink" ||
    give_up "bridge $bridge cannot be made; see supervisor.log"
  tap=$(ifconfig tap create description "shai vm $name" group shai up) || give_up "no tap can be made"
  ifconfig "$bridge" addm "$tap" || give_up "tap $tap cannot join bridge $bridge"
  cp bhyve.conf bhyve.conf.started
  stat -f %z disk.img >disk.started
  if [ -n "$stopping" ]; then
    code=1
    clear_remains
    return
  fi
  log_console
  limit_logs_often </dev/null >/dev/null 2>&1 &
  limiter=$!
  began=$(date +%s)
  bhyve -k bhyve.conf -o "pci.0.2.0.backend=$tap" "$vmm" &
  guest=$!
  # A signal that came just before has powered nothing off. A process that has not become bhyve yet would lose another.
  [ -z "$stopping" ] || { sleep 1 && power_off; }
  state running
  wait_for "$guest"
  guest=''
  [ "$(($(date +%s) - began))" -lt "$GOOD_SECONDS" ] || faults=0
  kill "$console" "$limiter" 2>/dev/null
  clear_remains
}

# shellcheck disable=SC2317 # a trap calls it
power_off() {
  stopping=yes
  [ -n "$guest" ] && [ -z "$killer" ] || return 0
  kill "$guest" 2>/dev/null
  kill_later &
  killer=$!
}

# Its pause ends with it. Otherwise whoever reads this program's messages would wait for their end.
# shellcheck disable=SC2317 # a trap calls what calls it
kill_later() {
  trap 'kill "$pause"; exit' TERM
  sleep "$POWER_OFF_SECONDS" &
  pause=$!
  wait "$pause" && kill -KILL "$guest"
}

finish() {
  [ -z "$killer" ] || kill "$killer" 2>/dev/null
  state "$*"
  exit 0
}

clear_only=''
if [ "$1" = --clear ]; then
  clear_only=yes
  shift
fi
cd "$1" || exit 1
read_settings || give_up "settings is incomplete"
if [ -n "$clear_only" ]; then
  clear_remains
  exit 0
fi
echo $$ >run.pid
trap power_off TERM INT
clear_remains
while [ -z "$stopping" ]; do
  run_guest
  case $code in
    0) faults=0 && say "reboots" && continue ;;
    1 | 2) finish stopped ;;
  esac
  [ -z "$stopping" ] || break
  faults=$((faults + 1))
  say "bhyve ended with $code"
  [ "$faults" -lt "$MOST_FAULTS" ] || give_up "bhyve ended with $code, $faults times in a row"
  sleep "$PAUSE_SECONDS"
done
finish stopped
