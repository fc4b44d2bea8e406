#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Says whether a virtual machine lets in anybody with a password. The role runs it
# there as root. It changes nothing, and exits 1 when it finds something.
#
# Usage: verify.sh [ROOT]
#   ROOT  where the machine's files are (default: /)
set -eu

root=${1:-}
found=0

wrong() {
  printf 'verify: %s\n' "$*" >&2
  found=1
}

# The daemon's own reading of its configuration.
shown=$(/usr/sbin/sshd -T -C user=root,host=localhost,addr=127.0.0.1 -f "$root/etc/ssh/sshd_config") || {
  wrong "sshd does not accept $root/etc/ssh/sshd_config (its message is above)"
  exit 1
}
for wanted in 'passwordauthentication no' 'kbdinteractiveauthentication no' 'permitemptypasswords no'; do
  printf '%s\n' "$shown" | grep -qxF "$wanted" ||
    wrong "sshd has not '$wanted': set it in $root/etc/ssh/sshd_config"
done
printf '%s\n' "$shown" | grep -qxE 'permitrootlogin (without-password|prohibit-password|forced-commands-only|no)' ||
  wrong "sshd lets root in with a password: set 'PermitRootLogin prohibit-password'"

# A password that no input fits begins with *; an empty field is a password, too.
accounts=$root/etc/master.passwd
if [ ! -r "$accounts" ]; then
  wrong "$accounts cannot be read: run this as root"
else
  with=$(awk -F: '$1 !~ /^#/ && $2 !~ /^[*]/ { printf "%s%s", separator, $1; separator = ", " }' "$accounts")
  [ -z "$with" ] || wrong "these accounts have a password, or an empty one: $with"
  default=$(awk -F: '$1 == "freebsd" || $1 == "ec2-user" { printf "%s%s", separator, $1; separator = ", " }' "$accounts")
  [ -z "$default" ] || wrong "the image's default user is there: $default"
fi

for copy in "$root/var/cache/nuageinit/user_data" "$root/var/cache/nuageinit/user-data"; do
  [ ! -e "$copy" ] || wrong "$copy is there, and has the host key: remove it"
done
exit "$found"
