#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Writes software bills of materials (CycloneDX, JSON): the Python packages of requirements.lock, and the modules of the
# Go programs. Builds the tools when they are first used. The same sources give the same bytes.
#
# Usage: scripts/sbom.sh DIRECTORY
set -euo pipefail

[[ $# -eq 1 && -n $1 ]] || {
  sed -n '7s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
directory=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly TOOLS=$PWD/build/tools/sbom
readonly LOCK=deploy/sbom/requirements.lock

cmp -s "$LOCK" "$TOOLS/requirements.lock" || {
  rm -rf "$TOOLS"
  python3 -m venv "$TOOLS"
  "$TOOLS/bin/python" -m pip --quiet install --disable-pip-version-check --only-binary=:all: --require-hashes \
    --requirement "$LOCK"
  cp "$LOCK" "$TOOLS/requirements.lock"
}
gomod=$(go -C deploy/tools tool -n cyclonedx-gomod)

mkdir -p "$directory"
"$TOOLS/bin/cyclonedx-py" requirements --output-reproducible --output-format JSON --output-file "$directory/python.cdx.json" \
  requirements.lock
for module in monitor devcluster; do
  "$gomod" mod -json -std -test -noserial -notimestamp -output "$directory/$module.cdx.json" "$module"
done
