#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Puts what a member of a pool runs into one directory, an image: the monitor
# and its supervisors, libshai, and the programs of Sys-E. What has not changed keeps its time.
# With a machine it is an image for FreeBSD, of what `make build freebsd-package` has made: packages for the virtual
# machines, too, which are that of shai and the given ones, such as that of the module.
#
# Usage: scripts/image.sh DIRECTORY [x86_64|aarch64 [PACKAGE...]]
set -euo pipefail

usage() {
  sed -n '4,9s/^# \{0,1\}//p' "$0"
  exit 2
}

[[ $# -ge 1 && -n $1 ]] || usage
image=$(realpath -m "$1")
machine=${2-}
packages=()
for package in "${@:3}"; do
  packages+=("$(realpath -e "$package")")
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# install_file SOURCE TARGET: replaces the file in one step, so that a program
# that runs keeps its own file.
install_file() {
  cmp -s "$1" "$image/$2" && return
  mkdir -p "$image/$(dirname "$2")"
  cp -p "$1" "$image/$2.new"
  mv "$image/$2.new" "$image/$2"
}

linux() {
  install_file build/bin/shai bin/shai
  install_file build/bin/shai-supervisor bin/shai-supervisor
  install_file build/runtime/libshai.so runtime/libshai.so
  for file in syse-frontend syse-engine syse.jar page.html advertisements.txt topics.txt; do
    install_file "build/syse/$file" "syse/$file"
  done
}

# A package that is no longer given would be installed, too.
install_packages() {
  local keep=()
  for package in "$@"; do
    install_file "$package" "packages/${package##*/}"
    keep+=(! -name "${package##*/}")
  done
  find "$image/packages" -maxdepth 1 -name '*.pkg' "${keep[@]}" -delete
}

freebsd() {
  local built=build/freebsd/$machine version
  install_file "$built/shai" bin/shai
  install_file "$built/libshai.so" runtime/libshai.so
  install_file "$built/syse-frontend" syse/syse-frontend
  install_file "$built/syse-engine" syse/syse-engine
  for file in syse.jar page.html advertisements.txt topics.txt; do
    install_file "build/syse/$file" "syse/$file"
  done
  version=$(awk '$1 == "PORTVERSION=" { print $2 }' freebsd/ports/sysutils/shai/Makefile)
  install_packages "$built/shai-$version.pkg" "${packages[@]}"
}

case $machine in
  '') linux ;;
  x86_64 | aarch64) freebsd ;;
  *) usage ;;
esac
