#!/usr/bin/python
# SPDX-License-Identifier: BSD-2-Clause
"""Ansible module: copy a regular file from beneath a directory, through no symbolic link."""

from __future__ import annotations

DOCUMENTATION = r"""
module: copy_beneath
short_description: Copy a regular file from beneath a directory that others write
description:
  - Copies a file on the host. Symbolic links are not followed, not even in the middle of its name, and also not those
    that somebody makes meanwhile.
  - A file that is not there, is behind a link, is no regular one or is too long is not copied, and no error. All else
    that prevents reading is one.
options:
  directory:
    description: The directory; links in its own name are followed.
    type: path
    required: true
  name:
    description: The file's name, relative to O(directory).
    type: str
    required: true
  bytes:
    description: How long the file may be.
    type: int
    required: true
  destination:
    description: The file to be made, in a directory that nobody else can write. It is an error if it is there.
    type: path
    required: true
author:
  - The Shai authors
"""

EXAMPLES = r"""
- name: Copy the facts
  shai.pools.copy_beneath:
    directory: /var/lib/shai/default-0/data
    name: facts/population.jsonl
    bytes: 1048576
    destination: /root/copies/population.jsonl
"""

RETURN = r"""
copied:
  description: Whether the file was copied.
  returned: always
  type: bool
"""

import errno
import os
import stat

from ansible.module_utils.basic import AnsibleModule

# loadgen.datasets.files opens files in the same way where they are; a module runs on a host that has nothing else.
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a FIFO would wait for its writer
NONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EINVAL}  # no such file, or none of the right kind


def opened(directory, name):
    """Open a regular file, each of its directories in the one before, so that none can be replaced by a link meanwhile.

    OSError for all other files.
    """
    *folders, last = name.split("/")
    if ".." in (*folders, last):
        raise OSError(errno.EINVAL, "leads out of the directory", name)
    place = os.open(directory, FOLDER)
    try:
        for folder in folders:
            outer, place = place, os.open(folder, FOLDER | os.O_NOFOLLOW, dir_fd=place)
            os.close(outer)
        descriptor = os.open(last, FILE, dir_fd=place)
    finally:
        os.close(place)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a regular file", name)
    return descriptor


def copy(source, destination, longest):
    """Copy what is left of a file; remove the copy and return False if that is more than ``longest`` bytes."""
    left = longest
    with open(destination, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as target:
        while piece := source.read(min(left + 1, 1 << 20)):
            left -= len(piece)
            if left < 0:
                break
            target.write(piece)
    if left < 0:
        os.unlink(destination)
    return left >= 0


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "name": {"type": "str", "required": True},
            "bytes": {"type": "int", "required": True},
            "destination": {"type": "path", "required": True},
        },
    )
    wanted = module.params
    try:
        descriptor = opened(wanted["directory"], wanted["name"])
    except OSError as error:
        if error.errno not in NONE:
            module.fail_json(msg=f"cannot open {wanted['name']} in {wanted['directory']}: {error.strerror}")
        module.exit_json(changed=False, copied=False)
    with os.fdopen(descriptor, "rb") as source:
        copied = copy(source, wanted["destination"], wanted["bytes"])
    module.exit_json(changed=copied, copied=copied)


if __name__ == "__main__":
    main()
