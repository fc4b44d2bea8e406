#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# modules.sh MODULE...: loads modules, and prints what needs a restart of the machine: a module that the security level
# keeps out, and the accounting of resources.
set -eu

if [ "$(sysctl -n kern.racct.enable 2>/dev/null || echo 0)" != 1 ]; then
  echo "restart for kern.racct.enable"
fi
for module in "$@"; do
  if kldstat -q -m "$module"; then
    continue
  fi
  if [ "$(sysctl -n kern.securelevel)" -gt 0 ]; then
    echo "restart for $module"
  elif message=$(kldload -n "$module" 2>&1); then
    echo "loaded $module"
  else
    echo "EnforcementInsufficient: module $module cannot be loaded ($message): install the package that has it, in the" \
      "version for this kernel ($(uname -r)); dmesg says more" >&2
    exit 1
  fi
done
