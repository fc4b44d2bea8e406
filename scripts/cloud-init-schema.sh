#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Takes cloud-init's schema of user-data out of its Debian package. The package is
# not installed: installed, it would set up this machine when it boots next.
#
# Usage: scripts/cloud-init-schema.sh FILE
set -euo pipefail

[[ $# -eq 1 ]] || {
  sed -n '4,7s/^# \{0,1\}//p' "$0"
  exit 2
}
readonly SCHEMA=./usr/lib/python3/dist-packages/cloudinit/config/schemas/schema-cloud-config-v1.json

to=$(realpath -m "$1")
work=$(mktemp -d -t shai-cloud-init.XXXXXXXX)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt-get downloads as a user of its own
cd "$work"

download() { apt-get -qq download cloud-init 2>"$work/said"; }
if ! download; then
  root=()
  [[ $EUID -eq 0 ]] || root=(sudo -n)
  { "${root[@]}" apt-get -qq update && download; } || {
    cat "$work/said" >&2
    echo "cloud-init-schema: apt-get could not download the package cloud-init (its message is above)" >&2
    exit 1
  }
fi
mkdir -p "$(dirname "$to")"
dpkg-deb --fsys-tarfile cloud-init_*.deb | tar --extract --to-stdout "$SCHEMA" >schema.json
mv schema.json "$to"
