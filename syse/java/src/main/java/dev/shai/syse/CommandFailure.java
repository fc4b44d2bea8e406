// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

/**
 * Something that the person who started the program can act on: the message names the thing, the
 * cause and the remedy, and is printed without a stack trace.
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
