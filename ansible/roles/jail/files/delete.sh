#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# delete.sh JAIL DIRECTORY DATASET: deletes the files of a jail that has stopped. DATASET may be empty.
set -eu

jail=$1 directory=$2 dataset=$3
WAIT_SECONDS=30

destroy_dataset() {
  left=$WAIT_SECONDS
  while ! message=$(zfs destroy -r "$1" 2>&1); do
    left=$((left - 1))
    case $left$message in
      0*) echo "dataset $1 is busy: end the processes that use it (fstat -f $directory/$jail), then try again" >&2 && exit 1 ;;
      *busy*) sleep 1 ;;
      *) echo "dataset $1 cannot be destroyed: $message" >&2 && exit 1 ;;
    esac
  done
}

if mount -p | awk -v root="$directory/$jail/" 'index($2, root) == 1 { found = 1 } END { exit !found }'; then
  echo "file systems are still mounted below $directory/$jail: unmount them (mount -p lists them), then try again" >&2
  exit 1
fi
if [ -n "$dataset" ] && zfs list -H -o name "$dataset/$jail" >/dev/null 2>&1; then
  destroy_dataset "$dataset/$jail"
fi
rm -rf "${directory:?}/$jail" "$directory/made/$jail" "/var/run/shai-jail-$jail.conf"
