// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.io.PrintStream;
import java.util.concurrent.atomic.AtomicLong;

/** Logs errors, but only some of them when there are many. */
public final class Complaints {
    private static final int IN_FULL = 10;
    private static final int THEN_EVERY = 1000;

    private final PrintStream log;
    private final AtomicLong count = new AtomicLong();

    /** Complaints go to {@code log}. */
    public Complaints(PrintStream log) {
        this.log = log;
    }

    /** Logs the first few, then one in a thousand. */
    public void add(String complaint) {
        long number = count.incrementAndGet();
        if (number <= IN_FULL || number % THEN_EVERY == 0) {
            log.println(complaint + (number > IN_FULL ? " (complaint " + number + ")" : ""));
        }
    }

    /** The number of complaints. */
    public long count() {
        return count.get();
    }
}
