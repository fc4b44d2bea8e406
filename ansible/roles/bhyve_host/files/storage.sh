#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# storage.sh COMMAND ARGUMENT...: images and virtual machines on a ZFS dataset (DATASET is set) or in a directory
# (DIRECTORY is set). What has its final name is complete: a directory is renamed to it, and a dataset has the snapshot
# @image, or the machine's mark vm.json. Prints what it changed.
#
#   path                        prints the directory
#   prepare                     makes the places of images and machines
#   has_image DIGEST            succeeds if the image is there
#   add_image DIGEST FILE KIND  unpacks a fetched image; KIND is xz or none
#   add_machine NAME DIGEST     makes a machine's directory from an image; its mark is read from standard input
#   remove_machine NAME         deletes a machine's directory, the mark last
#   tidy                        deletes images that no machine uses, and what was left half-made
set -eu

# A half-made dataset of ours has this property, and nothing else tells it from another's.
PROPERTY=dev.shai:made
WAIT_SECONDS=30

fail() {
  echo "$*" >&2
  exit 1
}

# Runs a command that writes to the storage. A full storage is what it is, whichever step notices it first.
write() {
  what=$1
  shift
  message=$("$@" 2>&1) && return
  if is_full "$message"; then
    fail "StorageFull: $what ($message): make room in ${root-$DATASET}, or choose another storage"
  fi
  fail "$what: $message"
}

# The words of programs and of ZFS, for a disk that is full and for a quota that is used up.
is_full() {
  case $1 in *"No space left on device"* | *"out of space"* | *"quota exceeded"* | *"Quota exceeded"*) ;; *) return 1 ;; esac
}

mountpoint() {
  zfs get -H -o value mountpoint "$1"
}

is_dataset() {
  zfs list -H -o name "$1" >/dev/null 2>&1
}

is_ours() {
  [ "$(zfs get -H -o value "$PROPERTY" "$1")" = shai ]
}

# A dataset stays busy for a while after the processes that used it have ended.
destroy() {
  tries=$WAIT_SECONDS
  while ! message=$(zfs destroy -r "$1" 2>&1); do
    case $message in *busy*) ;; *) fail "dataset $1 cannot be destroyed: $message" ;; esac
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] ||
      fail "dataset $1 is busy: end the processes that use it (fstat -f $(mountpoint "$1")), then try again"
    sleep 1
  done
}

path() {
  if [ -z "${DATASET-}" ]; then
    echo "$DIRECTORY"
    return
  fi
  is_dataset "$DATASET" || fail "dataset $DATASET does not exist: make it (zfs create $DATASET)"
  place=$(mountpoint "$DATASET")
  case $place in /*) echo "$place" ;; *) fail "dataset $DATASET has no mount point: set one (zfs set mountpoint=...)" ;; esac
}

prepare() {
  for part in images vms; do
    if [ -n "${DATASET-}" ]; then
      is_dataset "$DATASET/$part" || {
        write "dataset $DATASET/$part cannot be made" zfs create "$DATASET/$part"
        echo "made $DATASET/$part"
      }
    fi
    [ -d "$root/$part" ] || {
      write "$root/$part cannot be made" mkdir -p "$root/$part"
      echo "made $root/$part"
    }
  done
  [ "$(stat -f %Lp "$root/vms")" = 700 ] || { chmod 0700 "$root/vms" && echo "closed $root/vms"; }
}

has_image() {
  if [ -n "${DATASET-}" ]; then is_dataset "$DATASET/images/$1@image"; else [ -d "$root/images/$1" ]; fi
}

unpack() {
  case $3 in
    xz) message=$({ xz --decompress --stdout "$1" >"$2"; } 2>&1) ;;
    none) message=$(cp "$1" "$2" 2>&1) ;;
  esac && return
  rm -f "$2"
  if is_full "$message"; then
    fail "StorageFull: the image cannot be unpacked ($message): make room in $root, or choose another storage"
  fi
  fail "ImageFetchFailed: the image cannot be unpacked ($message): its description has another compression"
}

add_image() {
  if [ -n "${DATASET-}" ]; then
    ! is_dataset "$DATASET/images/$1" || destroy "$DATASET/images/$1"
    write "the image's dataset cannot be made" zfs create -o "$PROPERTY=shai" "$DATASET/images/$1"
    if ! (unpack "$2" "$root/images/$1/disk.img" "$3"); then
      destroy "$DATASET/images/$1"
      return 1
    fi
    write "the image's snapshot cannot be made" zfs snapshot "$DATASET/images/$1@image"
  else
    rm -rf "$root/images/$1.new"
    write "the image's directory cannot be made" mkdir "$root/images/$1.new"
    if ! (unpack "$2" "$root/images/$1.new/disk.img" "$3"); then
      rm -rf "$root/images/$1.new"
      return 1
    fi
    mv "$root/images/$1.new" "$root/images/$1"
  fi
  echo "added image $1"
}

add_machine() {
  place=$root/vms/$1
  if [ -n "${DATASET-}" ]; then
    if is_dataset "$DATASET/vms/$1"; then
      if [ -e "$place/vm.json" ] || ! is_ours "$DATASET/vms/$1"; then
        fail "dataset $DATASET/vms/$1 is not the pool's: find out whose it is, and rename or destroy it"
      fi
      destroy "$DATASET/vms/$1"
    fi
    write "the dataset of $1 cannot be made" zfs clone -o "$PROPERTY=shai" "$DATASET/images/$2@image" "$DATASET/vms/$1"
    write "the mark of $1 cannot be written" write_mark "$place"
  else
    [ ! -e "$place" ] || fail "$place is not the pool's: find out whose it is, and move it away"
    rm -rf "$place.new"
    # What is left of it is in the way of what would make room.
    trap 'rm -rf "$place.new"' EXIT
    write "the directory of $1 cannot be made" mkdir "$place.new"
    write "the disk of $1 cannot be copied to $place" cp "$root/images/$2/disk.img" "$place.new/disk.img"
    write "the mark of $1 cannot be written" write_mark "$place.new"
    mv "$place.new" "$place"
  fi
  echo "made $1"
}

write_mark() {
  chmod 0700 "$1" && cat >"$1/vm.json.new" && mv "$1/vm.json.new" "$1/vm.json"
}

remove_machine() {
  place=$root/vms/$1
  if [ -n "${DATASET-}" ]; then
    is_dataset "$DATASET/vms/$1" || return 0
    is_ours "$DATASET/vms/$1" || fail "dataset $DATASET/vms/$1 is not the pool's: it is not deleted"
    destroy "$DATASET/vms/$1"
    echo "removed $1"
  elif [ -d "$place" ]; then
    [ -e "$place/vm.json" ] || rmdir "$place" 2>/dev/null || fail "$place is not the pool's: it is not deleted"
    [ -d "$place" ] || return 0
    find "$place" -xdev -mindepth 1 -maxdepth 1 ! -name vm.json -exec rm -rf -- {} +
    rm -rf "$place"
    echo "removed $1"
  fi
}

# An image of a dataset that machines were cloned from cannot be destroyed: that is asked of ZFS.
unused() {
  if [ -n "${DATASET-}" ]; then
    [ -z "$(zfs get -H -o value clones "$DATASET/images/$1@image" 2>/dev/null | tr -d -)" ]
  elif grep -qsF "\"$1\"" "$root"/vms/*/vm.json; then
    return 1
  fi
}

tidy() {
  [ -d "$root/images" ] || return 0
  for image in "$root"/images/*; do
    digest=${image##*/}
    expr "${digest%.new}" : '[0-9a-f]\{128\}$' >/dev/null || continue
    unused "$digest" || continue
    if [ -n "${DATASET-}" ]; then destroy "$DATASET/images/$digest"; else rm -rf "$image"; fi
    echo "deleted image $digest"
  done
  for place in "$root"/vms/*-vm-[0-9]*.new; do
    [ ! -d "$place" ] || { rm -rf "$place" && echo "deleted $place"; }
  done
}

command=$1
shift
root=$(path)
case $command in
  path) echo "$root" ;;
  prepare | has_image | add_image | add_machine | remove_machine | tidy) "$command" "$@" ;;
  *) fail "storage.sh has no command $command" ;;
esac
