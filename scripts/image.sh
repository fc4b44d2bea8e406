#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Puts what a member of a pool runs into one directory, an image: the monitor
# and its supervisors, libshai, and the programs of Sys-E. What has not changed keeps its time.
#
# Usage: scripts/image.sh DIRECTORY
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ $# -eq 1 ]] || {
  sed -n '4,7s/^# \{0,1\}//p' "$0"
  exit 2
}
image=$1

# install_file SOURCE TARGET: replaces the file in one step, so that a program
# that runs keeps its own file.
install_file() {
  cmp -s "$1" "$image/$2" && return
  mkdir -p "$image/$(dirname "$2")"
  cp -p "$1" "$image/$2.new"
  mv "$image/$2.new" "$image/$2"
}

install_file build/bin/shai bin/shai
install_file build/bin/shai-supervisor bin/shai-supervisor
install_file build/runtime/libshai.so runtime/libshai.so
for file in syse-frontend syse-engine syse.jar page.html advertisements.txt; do
  install_file "build/syse/$file" "syse/$file"
done
