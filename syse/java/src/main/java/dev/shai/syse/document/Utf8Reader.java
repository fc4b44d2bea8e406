// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.document;

import java.io.IOException;
import java.io.InputStream;
import java.io.Reader;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CoderResult;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;

/**
 * Decodes UTF-8, replaces ill-formed sequences by U+FFFD, and counts the replacements, which the
 * JDK's own reader does not. Uses a fixed amount of memory, however long a line is, and ends after
 * a given number of characters.
 */
public final class Utf8Reader extends Reader {
    private static final int BUFFER_BYTES = 8192;
    private static final char REPLACEMENT = '\uFFFD';

    private final InputStream input;
    private final CharsetDecoder decoder =
            StandardCharsets.UTF_8
                    .newDecoder()
                    .onMalformedInput(CodingErrorAction.REPORT)
                    .onUnmappableCharacter(CodingErrorAction.REPORT);
    private final ByteBuffer bytes = ByteBuffer.allocate(BUFFER_BYTES).flip();
    private final CharBuffer characters = CharBuffer.allocate(BUFFER_BYTES).flip();
    private long remaining;
    private long replaced;
    private boolean inputEnded;
    private boolean truncated;

    /**
     * @param input closed by {@link #close}
     * @param limit how many characters (UTF-16 units) to give at most
     */
    public Utf8Reader(InputStream input, long limit) {
        this.input = input;
        this.remaining = limit;
    }

    /** How many ill-formed sequences have been replaced so far. */
    public long replaced() {
        return replaced;
    }

    /** Whether text was left unread because of the limit. */
    public boolean truncated() {
        return truncated;
    }

    @Override
    public int read(char[] destination, int offset, int length) throws IOException {
        if (length == 0) {
            return 0;
        }
        if (!characters.hasRemaining() && !refill()) {
            return -1;
        }
        if (remaining == 0) {
            truncated = true;
            return -1;
        }
        int count = (int) Math.min(Math.min(length, characters.remaining()), remaining);
        characters.get(destination, offset, count);
        remaining -= count;
        return count;
    }

    /** Decodes until there is at least one character; false at the end. */
    private boolean refill() throws IOException {
        characters.clear();
        while (characters.position() == 0) {
            if (inputEnded && !bytes.hasRemaining()) {
                characters.flip();
                return false;
            }
            if (!inputEnded) {
                readBytes();
            }
            decodeBytes();
        }
        characters.flip();
        return true;
    }

    private void readBytes() throws IOException {
        bytes.compact();
        int count = input.read(bytes.array(), bytes.position(), bytes.remaining());
        if (count < 0) {
            inputEnded = true;
        } else {
            bytes.position(bytes.position() + count);
        }
        bytes.flip();
    }

    private void decodeBytes() {
        while (characters.hasRemaining()) {
            CoderResult result = decoder.decode(bytes, characters, inputEnded);
            if (!result.isError()) {
                return;
            }
            if (!characters.hasRemaining()) {
                return; // decoded again, and counted, when there is room for the replacement
            }
            bytes.position(bytes.position() + result.length());
            characters.put(REPLACEMENT);
            replaced++;
        }
    }

    @Override
    public void close() throws IOException {
        input.close();
    }
}
