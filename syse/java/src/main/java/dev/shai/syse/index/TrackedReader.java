// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.index;

import java.io.IOException;
import java.io.Reader;

/**
 * Remembers whether reading failed. Lucene reports a document that cannot be read and an index that
 * cannot be written by the same kind of exception; only the second ends the build.
 */
final class TrackedReader extends Reader {
    private final Reader source;
    private IOException failure;

    TrackedReader(Reader source) {
        this.source = source;
    }

    /** The exception that reading the source threw, or null. */
    IOException failure() {
        return failure;
    }

    @Override
    public int read(char[] destination, int offset, int length) throws IOException {
        try {
            return source.read(destination, offset, length);
        } catch (IOException broken) {
            failure = broken;
            throw broken;
        }
    }

    /** Leaves the source open: Lucene closes what it has read, but the caller owns it. */
    @Override
    public void close() {}
}
