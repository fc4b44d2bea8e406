#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds build/bin/devcluster, unless it is newer than all of its sources. The
# first build compiles Kubernetes: several minutes, and some GB of memory.
#
# Usage: scripts/devcluster.sh
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly BINARY=build/bin/devcluster

mkdir -p build/bin
exec 9>build/bin/.devcluster.lock
flock 9
if [[ -e $BINARY && -z $(find devcluster scripts/devcluster.sh -newer "$BINARY" ! -name '*_test.go' -print -quit) ]]; then
  exit
fi

# Without a version number, Kubernetes would confuse clients.
version=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' devcluster/go.mod)
IFS=. read -r major minor _ <<<"${version#v}"
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
  flags+=" -X $package.gitTreeState=archive"
done
[[ -e $BINARY ]] || echo "devcluster: building Kubernetes $version for the first time; this takes some minutes" >&2
go build -C devcluster -ldflags "$flags" -o ../$BINARY.new ./cmd/devcluster
mv "$BINARY.new" "$BINARY"
