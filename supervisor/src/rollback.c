/* SPDX-License-Identifier: BSD-2-Clause */
#include "rollback.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory_file.h"
#include "shai_gate.h"

#define NOEXEC_SEAL 8u /* MFD_NOEXEC_SEAL, Linux 6.3: it can be mapped, but not be a program */

static_assert(SHAI_ROLLBACK_LISTEN == SHAI_FD_LISTEN, "the code accepts from it");
static_assert(SHAI_ROLLBACK_OPENED == SHAI_FD_RESERVED_END, "the code closes all from it on");
static_assert(
    (SHAI_GATE_HEAD & 0xffff) == SHAI_WIRE_VERSION && SHAI_GATE_HEAD >> 16 == SHAI_TRANSFER,
    "the gate sends it");
static_assert(SHAI_GATE_SUPERVISOR == SHAI_FD_MONITOR, "the gate sends to it");

int
rollback_open(void)
{
	const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
	int file = memfd_create("roll-back", MFD_CLOEXEC | MFD_ALLOW_SEALING | NOEXEC_SEAL);

	if (file < 0)
		return -1;
	if (pwrite(file, rollback_code, SHAI_ROLLBACK_CODE_SIZE, 0) == SHAI_ROLLBACK_CODE_SIZE &&
	    fcntl(file, F_ADD_SEALS, seals) == 0)
		return memory_file_to_read(file);
	(void)close(file);
	return -1;
}
