#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# root.sh JAIL DIRECTORY BASE [DATASET]: makes the root of a jail that has never run, DIRECTORY/JAIL. The file
# DIRECTORY/made/JAIL says that it is complete. The jail's own programs cannot reach that file.
set -eu

jail=$1 directory=$2 base=$3 dataset=${4-}
root=$directory/$jail

if [ -n "$dataset" ] && ! zfs list -H -o name "$dataset/$jail" >/dev/null 2>&1; then
  zfs create -o mountpoint="$root" -o dev.shai:made=shai "$dataset/$jail"
fi
cd "$base"
mkdir -p "$root"
chmod 0755 "$root"
cd "$root"
for part in bin lib libexec sbin usr dev mnt proc root tmp var; do
  mkdir -p "$part"
done
chmod 0700 root
chmod 1777 tmp
# Without file flags: at a raised security level nobody can take them away, and nothing could be deleted.
(cd /var && find . -xdev -maxdepth 2 -type d -print0 | tar --null -n --no-fflags -cf - -T -) |
  tar -C var --no-fflags -xpf -
rm -rf etc
cp -R -p "$base/etc" etc
cat >etc/rc.conf <<'END'
cron_enable=NO
sendmail_enable=NONE
syslogd_enable=NO
clear_tmp_enable=YES
END
mkdir -p "$directory/made"
: >"$directory/made/$jail"
echo "made $root"
