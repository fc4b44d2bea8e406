#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bridge.sh NAME POOL ADDRESS UPLINK: makes a pool's bridge, and tells what it changed. ADDRESS is the host's address on
# it, UPLINK an interface that joins it; both may be empty. The uplink keeps its addresses, or does not stay.
set -eu

name=$1 mark="shai pool $2" address=$3 uplink=$4

fail() {
  echo "BridgeConflict: $*" >&2
  exit 1
}

exists() {
  ifconfig "$1" >/dev/null 2>&1
}

addresses_of() {
  ifconfig "$1" | grep -E '^[[:space:]]*inet6? ' || true
}

# Prints the bridge that has an interface as a member.
bridge_of() {
  for bridge in $(ifconfig -g bridge); do
    if ifconfig "$bridge" | grep -q "member: $1 "; then
      echo "$bridge"
    fi
  done
}

check_address() {
  for interface in $(ifconfig -l); do
    if [ "$interface" != "$name" ] && addresses_of "$interface" | grep -qF " ${address%/*} "; then
      fail "address ${address%/*} is already on interface $interface: choose another network for the virtual machines"
    fi
  done
}

make_bridge() {
  if exists "$name"; then
    ifconfig "$name" | grep -qE "description: $mark\$" ||
      fail "interface $name is not the bridge of this pool ($mark): find out whose it is, and rename or destroy it"
  else
    ifconfig bridge create name "$name" description "$mark" up >/dev/null
    echo "made bridge $name"
  fi
}

give_address() {
  addresses_of "$name" | grep -qF " ${address%/*} " && return
  case $address in *:*) family=inet6 ;; *) family=inet ;; esac
  ifconfig "$name" "$family" "$address" alias
  echo "gave bridge $name address $address"
}

join_uplink() {
  exists "$uplink" || fail "the host has no interface $uplink: correct the uplink (ifconfig -l lists the interfaces)"
  there=$(bridge_of "$uplink")
  [ "$there" != "$name" ] || return 0
  [ -z "$there" ] ||
    fail "uplink $uplink is already a member of bridge $there: an interface has one bridge; choose another uplink"
  before=$(addresses_of "$uplink")
  # From FreeBSD 15 on, a member of a bridge may not have addresses unless this is set.
  if [ -n "$before" ] && [ "$(sysctl -n net.link.bridge.member_ifaddrs 2>/dev/null || echo 1)" = 0 ]; then
    fail "uplink $uplink has addresses, which this release does not let a bridge's member keep: set" \
      "net.link.bridge.member_ifaddrs=1 in /etc/sysctl.conf, or choose an uplink without addresses"
  fi
  ifconfig "$name" addm "$uplink"
  if [ "$(addresses_of "$uplink")" != "$before" ]; then
    ifconfig "$name" deletem "$uplink"
    fail "uplink $uplink lost an address when it joined $name, and was taken out again: choose another uplink"
  fi
  echo "joined $uplink to bridge $name"
}

[ -z "$address" ] || check_address
make_bridge
[ -z "$address" ] || give_address
[ -z "$uplink" ] || join_uplink
