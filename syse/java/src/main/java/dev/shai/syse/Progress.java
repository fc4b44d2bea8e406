// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import java.io.PrintStream;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** Progress lines for something countable, at most one every two seconds, with the rate. */
public final class Progress {
    private static final long INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final PrintStream output;
    private final String doing;
    private final long total;
    private final long started = System.nanoTime();
    private long lastPrinted = started;

    /**
     * @param doing what is being done, as in "indexing documents"
     * @param total how many there will be, or 0 when unknown
     */
    public Progress(PrintStream output, String doing, long total) {
        this.output = output;
        this.doing = doing;
        this.total = total;
    }

    /** Reports how many are done; prints a line if the last one is old enough. */
    public synchronized void update(long done) {
        long now = System.nanoTime();
        if (now - lastPrinted >= INTERVAL_NANOS) {
            lastPrinted = now;
            print(done, now);
        }
    }

    /** Prints the last line. */
    public synchronized void finish(long done) {
        print(done, System.nanoTime());
    }

    /** Seconds since the beginning. */
    public double seconds() {
        return (System.nanoTime() - started) / 1e9;
    }

    private void print(long done, long now) {
        double rate = done / Math.max(1e-3, (now - started) / 1e9);
        String of = total > 0 ? " of " + total : "";
        output.printf(Locale.ROOT, "%s: %d%s, %.0f/s%n", doing, done, of, rate);
        output.flush();
    }
}
