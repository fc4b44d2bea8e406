#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# symbols_test.sh LIBRARY: every path-taking function of the C library that the
# JVM's own libraries import (or look up by name) is either interposed or waived
# here with a reason; and the library exports nothing else by accident.
set -eu
library=$1
java=$(readlink -f "${JAVA_HOME:+$JAVA_HOME/bin/}java" 2> /dev/null || true)
[ -x "$java" ] || java=$(readlink -f "$(command -v java)")
lib=$(dirname "$(dirname "$java")")/lib

# Functions that take a path, or stand for one that does.
taking='open|open64|openat|openat64|creat|creat64|__open_2|__open64_2|__openat_2|__openat64_2
fopen|fopen64|freopen|freopen64|stat|stat64|lstat|lstat64|fstat|fstat64|fstatat|fstatat64|statx
access|faccessat|eaccess|euidaccess|opendir|scandir|scandir64|ftw|nftw|nftw64|glob|glob64
realpath|__realpath_chk|canonicalize_file_name|readlink|readlinkat|__readlink_chk|__readlinkat_chk
mkdir|mkdirat|rmdir|unlink|unlinkat|remove|rename|renameat|renameat2|link|linkat|symlink|symlinkat
mknod|mknodat|mkfifo|mkfifoat|truncate|truncate64|chmod|fchmodat|lchmod|chown|lchown|fchownat
utime|utimes|lutimes|utimensat|futimesat|statfs|statfs64|statvfs|statvfs64|pathconf|chdir|chroot
getxattr|lgetxattr|setxattr|lsetxattr|listxattr|llistxattr|removexattr|lremovexattr
mkstemp|mkstemp64|mkostemp|mkostemp64|mkdtemp|inotify_add_watch|name_to_handle_at|acct|mount|umount2'

# Left to the plain call, which the monitor answers or the kernel refuses:
#   symlink mknod chown lchown   no task makes or gives away files beneath a capability
#   chdir                        a working directory cannot be a capability
#   pathconf                     only for the longest name of the host's root
#   lutimes futimesat            looked up for SecureDirectoryStream, relative to its own descriptor
#   mkstemp64                    the JVM's own dumps and perf maps, in the host's directories
waived='symlink mknod chown lchown chdir pathconf lutimes futimesat mkstemp64 inotify_add_watch'

status=0
exported=$(nm -D --defined-only "$library" | awk '{ print $3 }')
for object in libnio libjava libzip libjimage libjli server/libjvm; do
	imported=$(nm -D --undefined-only "$lib/$object.so" | awk '{ sub(/@.*/, "", $2); print $2 }')
	found=$(strings -n 4 "$lib/$object.so" | grep -E '^[a-z_0-9]+$' || true)
	for name in $(printf '%s\n%s\n' "$imported" "$found" | grep -xE "$(echo "$taking" | tr '\n' '|')" | sort -u); do
		echo "$exported" | grep -qx "$name" && continue
		# What is only mentioned in a string table may not be a symbol at all.
		echo "$waived" | grep -qw "$name" && continue
		echo "symbols: $object uses $name, which is neither interposed nor waived" >&2
		status=1
	done
done
for name in $(echo "$exported" | grep -v '^shai_'); do
	echo "$name" | grep -qxE "$(echo "$taking" | tr '\n' '|')|__f?l?xstat(at)?(64)?" && continue
	echo "symbols: the library exports $name, which is no function that takes a path: add it to taking (symbols_test.sh)" >&2
	status=1
done
[ "$status" -eq 0 ] && echo "symbols: the JVM's path functions are covered"
exit "$status"
