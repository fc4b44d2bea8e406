#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# preload_test.sh BUILD: an unmodified program under the preload layer, and what
# happens when its registration fails.
set -eu
build=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir -p "$directory/view/3/0" "$directory/index"
printf seventeen > "$directory/view/3/0/17"

run() {
	"$build/tests/launch" "$build/libshai.so" "$directory/view" "$directory/index" "$@"
}

fail() {
	echo "preload: FAILED: $1" >&2
	exit 1
}

output=$(run "$build/tests/preloaded") || fail "the program ended with $?"
echo "$output" | grep -q 'all is well' || fail "the program did not finish"
echo "$output" | grep -qx 'transfer query 17: 5 6' || fail "its transfer did not arrive: $output"

# The twin: without the library the same program finds none of its paths.
if "$build/tests/preloaded" 2> /dev/null; then fail "the program runs without libshai"; fi

# A task whose registration fails must not start.
for answer in refuse garbage; do
	status=0
	message=$(LAUNCH_ANSWER=$answer run /bin/echo started 2>&1) || status=$?
	[ "$status" -eq 71 ] || fail "answer $answer: status $status, not 71"
	case $message in
	*started*) fail "answer $answer: the program was started" ;;
	*"libshai: search:"*) ;;
	*) fail "answer $answer: no reason given: $message" ;;
	esac
done
[ "$(run /bin/echo started)" = started ] || fail "the allowed twin does not start"
echo "preload: passed"
