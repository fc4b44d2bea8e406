// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.document;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class Utf8ReaderTest {
    /** Gives one to three bytes at a time. */
    private static InputStream inPieces(byte[] bytes, long seed) {
        Random random = new Random(seed);
        return new ByteArrayInputStream(bytes) {
            @Override
            public int read(byte[] destination, int offset, int length) {
                return super.read(destination, offset, Math.min(length, 1 + random.nextInt(3)));
            }
        };
    }

    private static String read(Utf8Reader reader) throws IOException {
        StringBuilder text = new StringBuilder();
        char[] buffer = new char[7];
        for (int count = reader.read(buffer); count >= 0; count = reader.read(buffer)) {
            text.append(buffer, 0, count);
        }
        return text.toString();
    }

    @Property(tries = 500)
    void decodesAnyBytesLikeTheJdk(@ForAll byte[] bytes, @ForAll long seed) throws IOException {
        Utf8Reader reader = new Utf8Reader(inPieces(bytes, seed), Long.MAX_VALUE);
        assertEquals(new String(bytes, StandardCharsets.UTF_8), read(reader));
    }

    @Property(tries = 200)
    void countsNothingInWellFormedText(@ForAll String text, @ForAll long seed) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        Utf8Reader reader = new Utf8Reader(inPieces(bytes, seed), Long.MAX_VALUE);
        assertEquals(new String(bytes, StandardCharsets.UTF_8), read(reader));
        assertEquals(0, reader.replaced());
        assertFalse(reader.truncated());
    }

    @Property(tries = 50)
    void countsEveryReplacement(@ForAll @IntRange(min = 0, max = 20_000) int count)
            throws IOException {
        byte[] bytes = "a\u0092".repeat(count).getBytes(StandardCharsets.ISO_8859_1);
        Utf8Reader reader = new Utf8Reader(new ByteArrayInputStream(bytes), Long.MAX_VALUE);
        assertEquals("a\uFFFD".repeat(count), read(reader));
        assertEquals(count, reader.replaced());
    }

    @Example
    void endsAtTheLimitAndSaysSo() throws IOException {
        byte[] bytes = "abcdef".getBytes(StandardCharsets.UTF_8);
        Utf8Reader cut = new Utf8Reader(new ByteArrayInputStream(bytes), 5);
        assertEquals("abcde", read(cut));
        assertTrue(cut.truncated());
        Utf8Reader whole = new Utf8Reader(new ByteArrayInputStream(bytes), 6);
        assertEquals("abcdef", read(whole));
        assertFalse(whole.truncated());
    }
}
