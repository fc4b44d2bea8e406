#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Prepares a machine for building and running everything: checks the tool chains,
# installs missing Debian packages if it may, and makes the Python environment.
# It can be run again; if nothing is missing, it changes nothing and needs no
# network.
#
# Usage: scripts/setup.sh [--check]
#   --check  only look; say what is missing and exit 1
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly VENV=.venv
readonly LOCK=requirements.lock

check_only=no
case "${1:-}" in
  "") ;;
  --check) check_only=yes ;;
  *)
    sed -n '4,11s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac

say() { printf 'setup: %s\n' "$*"; }
die() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# at_least WANTED FOUND: whether the dotted version FOUND is WANTED or newer.
at_least() { [[ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" == "$1" ]]; }

# --- Debian packages ---------------------------------------------------------
# One line per package: its name, then a file or (without a slash) a command
# that shows it is there, however it was installed. A file may be a pattern.
readonly PACKAGES="
redis-server        redis-server
openssh-client      ssh
openssh-server      /usr/sbin/sshd
systemd             /lib/systemd/systemd
systemd-container   systemd-nspawn
openssl             openssl
curl                curl
iproute2            ip
dict-gcide          /usr/share/dictd/gcide.dict.dz
maven               mvn
pkg-config          pkg-config
libhiredis-dev      /usr/include/hiredis/hiredis.h
libjansson-dev      /usr/include/jansson.h
libhttp-parser-dev  /usr/include/http_parser.h
libsodium-dev       /usr/include/sodium.h
libcmocka-dev       /usr/include/cmocka.h
libbsd-dev          /usr/include/bsd/sys/tree.h
mandoc              mandoc
bmake               bmake
zstd                zstd
clang               clang
libclang-rt-dev     /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a
clang-format        clang-format
shellcheck          shellcheck
python3-venv        /usr/share/python-wheels
prometheus          promtool
chromium            chromium
chromium-driver     chromedriver
poppler-utils       pdftotext
npm                 npm
xorriso             xorriso
libarchive-tools    bsdtar
gpg                 gpg
gpg-agent           gpg-agent
"

missing_packages() {
  local package probe
  while read -r package probe; do
    [[ -z $package ]] && continue
    case $probe in
      /*) compgen -G "$probe" >/dev/null || echo "$package" ;;
      *) command -v "$probe" >/dev/null || echo "$package" ;;
    esac
  done <<<"$PACKAGES"
}

# The demo runs a Redis and a Prometheus of its own, and the tests an sshd of their
# own: the packages must neither start nor enable a system service.
keep_services_down() {
  local policy=/usr/sbin/policy-rc.d
  [[ -e $policy ]] && return
  printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$policy" >/dev/null
  "${root[@]}" chmod 755 "$policy"
  # shellcheck disable=SC2064 # expand now: the array is gone in the trap
  trap "${root[*]} rm -f $policy" EXIT
}

disable_service() {
  [[ ! -d /run/systemd/system ]] || "${root[@]}" systemctl -q disable "$1"
}

install_packages() {
  local -a packages=("$@") root=()
  if [[ $EUID -ne 0 ]]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null && root=(sudo -n)
  fi
  if ! command -v apt-get >/dev/null || [[ $EUID -ne 0 && ${#root[@]} -eq 0 ]]; then
    die "please install: sudo apt-get install --no-install-recommends ${packages[*]}"
  fi
  say "installing ${packages[*]}"
  keep_services_down
  local -a apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  "${apt[@]}" install -y --no-install-recommends "${packages[@]}" >/dev/null 2>&1 ||
    { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${packages[@]}" >/dev/null; } ||
    die "apt-get could not install: ${packages[*]} (its message is above)"
  local package
  for package in "${packages[@]}"; do
    case $package in
      redis-server) disable_service redis-server ;;
      openssh-server) disable_service ssh ;;
      prometheus) disable_service prometheus ;;
    esac
  done
}

# --- tool chains -------------------------------------------------------------
check_go() {
  local wanted found
  wanted=$(awk '$1 == "go" { print $2 }' monitor/go.mod devcluster/go.mod | sort -V | tail -n 1)
  command -v go >/dev/null || die "Go is missing: install Go $wanted or newer from https://go.dev/dl/ and put it on PATH"
  found=$(GOTOOLCHAIN=local go env GOVERSION)
  at_least "$wanted" "${found#go}" ||
    die "Go $wanted or newer is needed, found ${found#go}: install a newer one from https://go.dev/dl/"
}

check_java() {
  local found
  command -v javac >/dev/null || die "a JDK is missing: sudo apt-get install openjdk-17-jdk-headless"
  found=$(javac -version 2>&1 | awk '{ print $2 }')
  at_least 17 "$found" || die "JDK 17 or newer is needed, found $found: sudo apt-get install openjdk-17-jdk-headless"
}

check_c() {
  if ! command -v gcc >/dev/null || ! command -v make >/dev/null; then
    die "a C compiler or make is missing: sudo apt-get install build-essential"
  fi
}

# Prints the first Python that is new enough.
find_python() {
  local candidate
  for candidate in python3 python3.11 python3.12 python3.13 python3.14; do
    "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$candidate" && return
  done
  die "Python 3.11 or newer is missing: sudo apt-get install python3 python3-venv"
}

# --- Python environment ------------------------------------------------------
venv_is_current() {
  [[ -x $VENV/bin/python && -f $VENV/.lock.sha256 ]] && sha256sum --quiet --check "$VENV/.lock.sha256" >/dev/null 2>&1
}

# An environment that is a link belongs to another checkout, whose programs may run from it now.
make_venv() {
  local python
  [[ ! -L $VENV ]] ||
    die "$VENV is a link to an environment that is older than $LOCK and is used elsewhere too: update it there, or remove the link and run scripts/setup.sh"
  python=$(find_python)
  say "installing the locked Python packages into $VENV"
  "$python" -m venv --clear "$VENV"
  "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$LOCK" ||
    die "pip could not install $LOCK (its message is above); the next run starts afresh"
  sha256sum "$LOCK" >"$VENV/.lock.sha256"
}

# Lets the environment's programs find the packages of this checkout from any directory:
# locust is given a file of loadgen/scenarios, or a copy of one anywhere. The line is
# relative to the folder that it is in: an absolute one would follow the last checkout
# to use an environment that several share by a link.
readonly CHECKOUT_LINE=../../../..

packages_of_venv() { "$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

checkout_is_importable() {
  local file
  file=$(packages_of_venv)/checkout.pth
  [[ -f $file && $(<"$file") == "$CHECKOUT_LINE" ]]
}

make_importable() {
  checkout_is_importable && return
  local place
  place=$(packages_of_venv)
  echo "$CHECKOUT_LINE" >"$place/checkout.pth" || die "$place/checkout.pth cannot be written: change its rights"
}

# -----------------------------------------------------------------------------
check_go
check_java
check_c
find_python >/dev/null
mapfile -t missing < <(missing_packages)
if [[ $check_only == yes ]]; then
  [[ ${#missing[@]} -eq 0 ]] || die "missing packages: ${missing[*]}"
  venv_is_current || die "the Python environment is missing or older than $LOCK: run scripts/setup.sh"
  checkout_is_importable || die "the Python environment does not find this checkout: run scripts/setup.sh"
else
  [[ ${#missing[@]} -eq 0 ]] || install_packages "${missing[@]}"
  venv_is_current || make_venv
  make_importable
fi
say "everything is in place"
