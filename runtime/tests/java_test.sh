#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# java_test.sh BUILD SOURCES: a real JVM under the preload layer. JAVA_HOME or the
# path says which; without a JDK this fails, for a skipped test protects nobody.
set -eu
build=$1
sources=$2
java=$(readlink -f "${JAVA_HOME:+$JAVA_HOME/bin/}java" 2> /dev/null || true)
[ -x "$java" ] || java=$(readlink -f "$(command -v java)")
javac=$(dirname "$java")/javac
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir -p "$directory/view/3/0" "$directory/index" "$directory/classes"
printf seventeen > "$directory/view/3/0/17"

"$javac" -Xlint:all -Werror -d "$directory/classes" "$sources/Probe.java"

output=$("$build/tests/launch" "$build/libshai.so" "$directory/view" "$directory/index" \
	"$java" -XX:-UsePerfData -cp "$directory/classes" Probe) || {
	echo "java: FAILED with $?: $output" >&2
	exit 1
}
expected="probe: all is well
transfer query 1: 17 18 19
transfer query 2: 17 18 19"
if [ "$(echo "$output" | LC_ALL=C sort)" != "$expected" ]; then
	echo "java: FAILED, said: $output" >&2
	exit 1
fi
[ -z "$(find "$directory/index" -type f)" ] || {
	echo "java: FAILED, left files behind" >&2
	exit 1
}
echo "java: passed ($("$java" -version 2>&1 | head -n 1))"
