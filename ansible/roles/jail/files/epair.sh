#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# epair.sh up INTERFACE BRIDGE JAIL: makes the pair INTERFACEa (joins the bridge) and INTERFACEb (for the jail).
# epair.sh down INTERFACE JAIL: destroys it. The names are derived from the jail's name, and the description says whose
# the pair is.
set -eu

is_there() {
  ifconfig "$1" >/dev/null 2>&1
}

# Refuses a pair of another jail.
destroy() {
  is_there "${1}a" || return 0
  if ! ifconfig "${1}a" | grep -qE "description: shai jail $2\$"; then
    echo "BridgeConflict: interface ${1}a is not jail $2's: find out whose it is, and rename or destroy it" >&2
    exit 1
  fi
  ifconfig "${1}a" destroy
}

case $1 in
  up)
    destroy "$2" "$4"
    first=$(ifconfig epair create)
    # Nothing can find a pair without its names, so it does not stay.
    trap 'ifconfig "$first" destroy' EXIT
    ifconfig "${first%a}b" name "${2}b" >/dev/null
    ifconfig "$first" description "shai jail $4" name "${2}a" >/dev/null
    first=${2}a
    ifconfig "$first" up
    ifconfig "$3" addm "$first"
    trap - EXIT
    ;;
  down) destroy "$2" "$3" ;;
  *) echo "epair.sh has no command $1" >&2 && exit 1 ;;
esac
