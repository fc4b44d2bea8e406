#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Fails when no program reaches a Go function of the monitor on any system: functions that only tests
# call belong in a _test.go file. A library's exported functions need no caller here,
# so monitor/policy is left out; golangci-lint finds its unused functions.
#
# Usage: scripts/deadcode.sh
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly VERSION=v0.51.0
readonly PACKAGES='^shai\.dev/monitor/(cmd|internal)'
readonly SYSTEMS=(linux freebsd) # those that it is built for

tools=$PWD/build/tools
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0
[[ -x $tools/deadcode-$VERSION ]] || {
  GOBIN=$work go install "golang.org/x/tools/cmd/deadcode@$VERSION"
  mkdir -p "$tools"
  mv "$work/deadcode" "$tools/deadcode-$VERSION"
}

# A function is dead if it is dead on every system that compiles its file.
cd monitor
for system in "${SYSTEMS[@]}"; do
  # shellcheck disable=SC2016 # the template's variables, not the shell's
  GOOS=$system go list -f '{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}' ./... | sed -n "s|^$PWD/|compiled |p"
  GOOS=$system "$tools/deadcode-$VERSION" -filter "$PACKAGES" ./cmd/... | sed 's|^|dead |'
done | awk '
  $1 == "compiled" { compiled[$2]++ }
  $1 == "dead" { sub(/^dead /, ""); split($0, part, ":"); file[$0] = part[1]; dead[$0]++ }
  END { for (finding in dead) if (dead[finding] == compiled[file[finding]]) { print "monitor/" finding; found = 1 }; exit found }' || {
  echo 'deadcode: remove these functions, or move them into the tests that call them' >&2
  exit 1
}
