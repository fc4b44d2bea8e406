#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# base.sh make DIRECTORY: copies the system to DIRECTORY/base/NAME unless it is there, and prints `made NAME`.
# base.sh name: prints the name, which depends on the system's version and its packages.
# base.sh tidy DIRECTORY: deletes bases that no jail's configuration names.
set -eu

base_name() {
  version=$(freebsd-version -u)
  packages=$( (pkg info -q 2>/dev/null || true) | sort | sha256 -q)
  echo "$version-$(expr "$packages" : '\(........\)')"
}

make_base() {
  name=$(base_name)
  place=$1/base/$name
  [ ! -d "$place" ] || return 0
  rm -rf "$place.new"
  mkdir -p "$place.new"
  # The jails themselves are below /usr/local, and so is the copy.
  if ! tar -C / --no-fflags --exclude "./${1#/}" --exclude ./usr/src --exclude ./usr/obj --exclude ./usr/ports \
    --exclude ./usr/local/etc/shai-vm -cf - ./bin ./lib ./libexec ./sbin ./usr ./etc |
    tar -C "$place.new" --no-fflags -xpf -; then
    rm -rf "$place.new"
    echo "StorageFull: the system cannot be copied to $place: make room there (df -h $1)" >&2
    exit 1
  fi
  clean_etc "$place.new/etc"
  mv "$place.new" "$place"
  echo "made $name"
}

# What is the machine's own does not go to its jails.
clean_etc() {
  rm -rf "$1"/ssh/ssh_host_* "$1"/rc.conf "$1"/rc.conf.d "$1"/rc.conf.local "$1"/jail.conf "$1"/jail.conf.d "$1"/pf.conf \
    "$1"/fstab "$1"/hostid "$1"/machine-id "$1"/sysctl.conf "$1"/resolv.conf "$1"/devfs.rules
  mkdir "$1/rc.conf.d"
  : >"$1/fstab"
}

tidy() {
  for place in "$1"/base/*/; do
    place=${place%/}
    [ -d "$place" ] || continue
    [ "${place##*/}" != "$(base_name)" ] || continue
    grep -qsF "$place/" /etc/jail.conf.d/*.conf && continue
    rm -rf "$place"
    echo "deleted $place"
  done
}

case $1 in
  make) make_base "$2" ;;
  name) base_name ;;
  tidy) tidy "$2" ;;
  *) echo "base.sh has no command $1" >&2 && exit 1 ;;
esac
