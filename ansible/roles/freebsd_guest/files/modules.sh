#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# modules.sh MODULE...: loads modules, and prints what needs a restart of the machine: a module that the security level
# keeps out, one whose package has brought another file than the one that is loaded, and the accounting of resources.
#
# The kernel does not tell which file it has loaded, and times can be wrong. So checksums of a package's module are
# written down: in RUNNING, which each boot empties, of what is loaded; in KNOWN, of what was there last. What a boot
# loads was known before it, or is taken for another one: that costs one restart, in which it becomes known.
set -eu

PACKAGED=/boot/modules
RUNNING=/var/run
KNOWN=/var/db

checksum() {
  sha256 -q "$PACKAGED/$1.ko"
}

note() {
  echo "$3" >"$1/shai-module-$2"
}

noted() {
  cat "$1/shai-module-$2" 2>/dev/null || true
}

# Succeeds if the kernel has the module of the file that is installed.
is_current() {
  [ -e "$PACKAGED/$1.ko" ] || return 0
  now=$(checksum "$1")
  if [ ! -e "$RUNNING/shai-module-$1" ] && [ "$(noted "$KNOWN" "$1")" = "$now" ]; then
    note "$RUNNING" "$1" "$now"
  fi
  [ "$(noted "$RUNNING" "$1")" != "$now" ] || return 0
  # In this order: a run that ends in between asks for a restart again.
  [ -e "$RUNNING/shai-module-$1" ] || note "$RUNNING" "$1" unknown
  note "$KNOWN" "$1" "$now"
  return 1
}

load() {
  if [ "$(sysctl -n kern.securelevel)" -gt 0 ]; then
    [ ! -e "$PACKAGED/$1.ko" ] || note "$KNOWN" "$1" "$(checksum "$1")"
    echo "restart for $1"
  elif message=$(kldload -n "$1" 2>&1); then
    if [ -e "$PACKAGED/$1.ko" ]; then
      note "$RUNNING" "$1" "$(checksum "$1")"
      note "$KNOWN" "$1" "$(checksum "$1")"
    fi
    echo "loaded $1"
  else
    echo "EnforcementInsufficient: module $1 cannot be loaded ($message): install the package that has it, in the" \
      "version for this kernel ($(uname -r)); dmesg says more" >&2
    exit 1
  fi
}

if [ "$(sysctl -n kern.racct.enable 2>/dev/null || echo 0)" != 1 ]; then
  echo "restart for kern.racct.enable"
fi
for module in "$@"; do
  if ! kldstat -q -m "$module"; then
    load "$module"
  elif ! is_current "$module"; then
    echo "restart for $module"
  fi
done
