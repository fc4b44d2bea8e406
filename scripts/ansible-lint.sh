#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ansible-lint on the collection, by the strictest profile. Ansible finds a
# collection by the folders it lies in, so a link makes the folders.
#
# Usage: scripts/ansible-lint.sh [ANSIBLE-LINT ARGUMENT...]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly COLLECTIONS=$PWD/build/collections
mkdir -p "$COLLECTIONS/ansible_collections/shai"
ln -sfn "$PWD/ansible" "$COLLECTIONS/ansible_collections/shai/pools"
export ANSIBLE_COLLECTIONS_PATH=$COLLECTIONS ANSIBLE_HOME=$PWD/build/ansible NO_COLOR=1
PATH=$PWD/.venv/bin:$PATH
cd ansible
exec ansible-lint --offline --profile production --strict "$@"
