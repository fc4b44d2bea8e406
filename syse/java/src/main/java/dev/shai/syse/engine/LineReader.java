// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;

/**
 * Reads lines into one buffer, which is reused. A line that does not fit is skipped to its end. Not
 * for several threads.
 */
final class LineReader implements Closeable {
    /** Returned by {@link #next} at the end of the file. */
    static final int END = -1;

    /** Returned by {@link #next} for a line that was too long; it has been skipped. */
    static final int TOO_LONG = -2;

    private final InputStream input;
    private final byte[] buffer;
    private int begin;
    private int end;
    private byte[] line;

    /**
     * @param limit how many bytes a line may have, without its line feed
     */
    LineReader(InputStream input, int limit) {
        this.input = input;
        this.buffer = new byte[2 * limit + 2];
        this.line = new byte[limit];
    }

    /** The line that {@link #next} has read, valid until the next call. */
    byte[] line() {
        return line;
    }

    /**
     * Waits for a line.
     *
     * @return its length without the line feed, or {@link #END} or {@link #TOO_LONG}. Text after
     *     the last line feed of a file is not a line, because its writer died.
     */
    int next() throws IOException {
        boolean tooLong = false;
        int searched = begin;
        while (true) {
            for (int i = searched; i < end; i++) {
                if (buffer[i] == '\n') {
                    int length = i - begin;
                    tooLong |= length > line.length;
                    if (!tooLong) {
                        System.arraycopy(buffer, begin, line, 0, length);
                    }
                    begin = i + 1;
                    return tooLong ? TOO_LONG : length;
                }
            }
            if (end - begin > line.length) {
                tooLong = true;
                begin = end;
            }
            System.arraycopy(buffer, begin, buffer, 0, end - begin);
            end -= begin;
            begin = 0;
            searched = end;
            int count = input.read(buffer, end, buffer.length - end);
            if (count < 0) {
                return END;
            }
            end += count;
        }
    }

    @Override
    public void close() throws IOException {
        input.close();
    }
}
