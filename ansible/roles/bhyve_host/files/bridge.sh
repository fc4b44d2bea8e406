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

# Reads what ifconfig prints, and prints the networks of other interfaces that have an address in common with a network.
# awk(1) has no operations on bits, so networks are compared digit by digit. Each interface has a link-local network.
overlaps() {
  awk -v own="$name" -v wanted="$address" '
    function binary(number, width,   digits) {
      for (digits = ""; width > 0; width--) { digits = number % 2 digits; number = int(number / 2) }
      return digits
    }
    function value(hexadecimal,   place, sum) {
      sum = 0
      for (place = 1; place <= length(hexadecimal); place++)
        sum = sum * 16 + index("0123456789abcdef", substr(hexadecimal, place, 1)) - 1
      return sum
    }
    function digits_of(address,   parts, count, halves, left, right, i, digits) {
      sub(/%.*/, "", address)
      digits = ""
      if (address !~ /:/) {
        count = split(address, parts, ".")
        for (i = 1; i <= count; i++) digits = digits binary(parts[i], 8)
        return digits
      }
      if (split(address, halves, "::") == 1) halves[2] = ""
      left = split(halves[1], parts, ":")
      for (i = 1; i <= left; i++) digits = digits binary(value(tolower(parts[i])), 16)
      right = split(halves[2], parts, ":")
      while (length(digits) < 128 - 16 * right) digits = digits "0"
      for (i = 1; i <= right; i++) digits = digits binary(value(tolower(parts[i])), 16)
      return digits
    }
    BEGIN { split(wanted, given, "/"); mine = digits_of(given[1]) }
    /^[^ \t]/ { interface = $1; sub(/:$/, "", interface) }
    $1 ~ /^inet6?$/ && interface != own && $2 !~ /^fe80:/ && ($1 == "inet6") == (given[1] ~ /:/) {
      bits = length(mine)
      for (i = 3; i < NF; i++) {
        if ($i == "prefixlen") bits = $(i + 1)
        if ($i == "netmask") {
          bits = 0
          mask = $(i + 1); sub(/^0x/, "", mask); mask = binary(value(mask), 32)
          while (substr(mask, bits + 1, 1) == "1") bits++
        }
      }
      shorter = bits + 0 < given[2] + 0 ? bits + 0 : given[2] + 0
      if (substr(digits_of($2), 1, shorter) == substr(mine, 1, shorter)) print $2 "/" bits " of interface " interface
    }'
}

check_address() {
  case $address in */[1-9] | */[1-9][0-9] | */1[0-9][0-9]) ;; *)
    fail "address $address has no length of its network, or 0: expected a form such as 192.0.2.1/24; correct the network of" \
      "the virtual machines"
    ;;
  esac
  # What the bridge has is not looked at again: its machines shall start when another interface gets an address.
  ! exists "$name" || ! addresses_of "$name" | grep -qF " ${address%/*} " || return 0
  there=$(for interface in $(ifconfig -l); do ifconfig "$interface"; done | overlaps | head -n 1)
  [ -z "$there" ] ||
    fail "address $address is in a network with $there: choose another network for the virtual machines"
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
