// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

/**
 * A failure that the user of the program can remedy: the message says what failed, why, and what to
 * do, and is printed without a stack trace.
 */
public final class CommandFailure extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public CommandFailure(String message) {
        super(message);
    }

    public CommandFailure(String message, Throwable cause) {
        super(message, cause);
    }
}
