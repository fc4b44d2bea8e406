#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Maven on Sys-E's Java part. Goals that have succeeded once with the present
# pom.xml run offline from then on.
#
# Usage: scripts/maven.sh GOAL...
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly POM=syse/java/pom.xml
key=$( (printf '%s\n' "$@" && cat "$POM") | sha256sum | cut -c1-16)
stamp=build/stamps/maven-$key
offline=()
[[ -e $stamp && -d $HOME/.m2/repository ]] && offline=(--offline)
mvn --batch-mode --no-transfer-progress -Dstyle.color=never "${offline[@]}" --file "$POM" "$@"
mkdir -p build/stamps
touch "$stamp"
