#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Compiles and links for FreeBSD 15 with Zig, which contains its C library.
#
# Usage: scripts/zig-cc.sh MACHINE ARGUMENTS...
#   MACHINE is x86_64 or aarch64.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
machine=$1
shift
exec "$top/.venv/bin/python" -m ziglang cc -target "$machine-freebsd.15.0" -fno-sanitize=all "$@"
