#!/usr/bin/python
# SPDX-License-Identifier: BSD-2-Clause
"""Ansible module: load a file of commands into a key-value store, once."""

from __future__ import annotations

DOCUMENTATION = r"""
module: store_seed
short_description: Load commands into a key-value store, once
description:
  - Sends a file of commands to a Redis whose configuration and secrets C(shai keyvalue configure) wrote.
  - Waits for a store that is still starting. An interrupted load starts again, so the commands
    should be such that running them twice does no harm.
  - The secrets are read on the host and go to the store's socket only.
options:
  socket:
    description: The store's unix socket.
    type: path
    required: true
  secrets:
    description: File with the administrator's secrets; empty for an open store, which needs no login.
    type: path
    required: true
  source:
    description: File with the commands, as RESP or as lines. A C($) or C(~) in its path stands for itself.
    type: str
    required: true
  within:
    description: Directory that no symbolic link may lead O(source) out of; empty for none.
    type: path
    default: ""
  marker:
    description: File that says that the commands have been loaded; made at the end.
    type: path
    required: true
  jail:
    description: Name of the FreeBSD jail that the store is in; all paths but O(source) and O(within) are the
      jail's. Empty for none.
    type: str
    default: ""
  wait_seconds:
    description: How long the store may take to start.
    type: int
    default: 30
author:
  - The Shai authors
"""

EXAMPLES = r"""
- name: Load the profiles
  shai.pools.store_seed:
    socket: /var/lib/shai/default-0/run/store.sock
    secrets: /var/lib/shai/default-0/keyvalue/secrets.json
    source: /srv/profiles.resp
    marker: /var/lib/shai/default-0/keyvalue/seeded
"""

RETURN = r"""
replies:
  description: How many answers the store gave.
  returned: when commands were loaded
  type: int
"""

import json
import os
import re
import shutil
import subprocess
import time

from ansible.module_utils.basic import AnsibleModule


class Place:
    """Where the store is: this machine, or a jail on it, whose files only the jail's own programs open."""

    def __init__(self, jail):
        self.prefix = ["jexec", jail] if jail else []

    def run(self, *command):
        """Run a command there; return the finished process."""
        return subprocess.run([*self.prefix, *command], capture_output=True, text=True, check=False)

    def client(self, path, *options):
        """Return the command of the store's client."""
        return [*self.prefix, "redis-cli", "-s", path, *options]


def wait_for(place, path, seconds):
    """Wait until the store answers, if only with a refusal; return the last error, None when it does."""
    end = time.monotonic() + seconds
    while True:
        asked = subprocess.run(place.client(path, "PING"), capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            return None
        if time.monotonic() > end:
            return (asked.stderr or asked.stdout).strip()
        time.sleep(0.2)


def login(place, path):
    """Return the command that authenticates the connection as the administrator; empty without secrets."""
    if not path:
        return b""
    secrets = json.loads(place.run("cat", path).stdout)
    words = [secrets[name].encode() for name in ("AuthCommand", "Administrator", "Password")]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def load(place, path, first, source):
    """Send ``first`` and the file; return redis-cli's exit status and output."""
    with subprocess.Popen(
        place.client(path, "--pipe"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            process.stdin.write(first)
            with open(source, "rb") as file:
                shutil.copyfileobj(file, process.stdin)
            process.stdin.close()
        except BrokenPipeError:
            pass  # its output says why it ended
        output = process.stdout.read().decode(errors="replace")
    return process.returncode, output


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "socket": {"type": "path", "required": True},
            "secrets": {"type": "path", "required": True, "no_log": False},  # a path, not the secrets
            "source": {"type": "str", "required": True},
            "within": {"type": "path", "default": ""},
            "marker": {"type": "path", "required": True},
            "jail": {"type": "str", "default": ""},
            "wait_seconds": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    place = Place(wanted["jail"])
    if place.run("test", "-e", wanted["marker"]).returncode == 0:
        module.exit_json(changed=False)
    if not os.path.isfile(wanted["source"]):
        where = "in this virtual machine" if wanted["jail"] else "on this host"
        module.fail_json(
            msg=f"seed {wanted['source']} is not a file {where}: put it into the members' image, and name it "
            "$(IMAGE)/PATH, or put it there"
        )
    real = os.path.realpath(wanted["source"])
    if wanted["within"] and not real.startswith(os.path.realpath(wanted["within"]) + "/"):
        module.fail_json(
            msg=f"seed {wanted['source']} leads out of the image, through a symbolic link to {real}: put the file "
            "itself into the members' image, or name a file outside it"
        )
    if module.check_mode:
        module.exit_json(changed=True)
    error = wait_for(place, wanted["socket"], wanted["wait_seconds"])
    if error is not None:
        module.fail_json(msg=f"the store does not answer at {wanted['socket']}: {error}")
    status, text = load(place, wanted["socket"], login(place, wanted["secrets"]), wanted["source"])
    counts = re.search(r"errors: (\d+), replies: (\d+)", text)
    if status != 0 or counts is None or int(counts[1]) > 0:
        module.fail_json(msg=f"the store refused commands of seed {wanted['source']}: {' '.join(text.split())[-400:]}")
    place.run("touch", wanted["marker"]).check_returncode()
    module.exit_json(changed=True, replies=int(counts[2]))


if __name__ == "__main__":
    main()
