// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.constraints.UniqueElements;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MessagesTest {
    @Property(tries = 300)
    void requestsComeBack(
            @ForAll int query,
            @ForAll String user,
            @ForAll @Size(max = 5) List<String> friends,
            @ForAll String text,
            @ForAll @IntRange(min = 1, max = 64) int count,
            @ForAll boolean checked)
            throws Exception {
        SearchRequest request =
                new SearchRequest(
                        query,
                        wellFormed(user),
                        friends.stream().map(MessagesTest::wellFormed).toList(),
                        wellFormed(text),
                        count,
                        checked);
        byte[] line = Messages.line(request);
        assertEquals('\n', line[line.length - 1]);
        assertEquals(request, Messages.readRequest(line, line.length - 1));
    }

    /** Strings in Java may hold halves of characters, which no UTF-8 expresses. */
    private static String wellFormed(String any) {
        return new String(any.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
    }

    @Property(tries = 300)
    void partialAnswersComeBackExactly(
            @ForAll int query, @ForAll @Size(max = 64) @UniqueElements List<Integer> conduits)
            throws Exception {
        Random random = new Random(query);
        float[] scores = new float[conduits.size()];
        for (int i = 0; i < scores.length; i++) {
            scores[i] = random.nextFloat() * 50;
        }
        int[] numbers = conduits.stream().mapToInt(Integer::intValue).toArray();
        byte[] line = Messages.line(new Messages.Partial(query, new Hits(numbers, scores)));
        Messages.Partial read = Messages.readPartial(line, line.length - 1);
        assertEquals(query, read.query());
        assertArrayEquals(numbers, read.hits().conduits());
        assertArrayEquals(scores, read.hits().scores());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "``|0",
                "{|0",
                "[]|0",
                "null|0",
                "{\"query\":17}|17",
                "{\"query\":17,\"user\":\"a\",\"text\":\"t\"}|17",
                "{\"query\":17,\"user\":\"a\",\"text\":\"t\",\"count\":0}|17",
                "{\"query\":17,\"user\":\"a\",\"text\":7,\"count\":1}|17",
                "{\"query\":17,\"user\":\"a\",\"text\":\"t\",\"count\":1,\"checked\":1}|17",
                "{\"query\":17,\"user\":\"a\",\"text\":\"t\",\"count\":1,\"friends\":\"b\"}|17",
                "{\"query\":17,\"user\":\"a\",\"text\":\"t\",\"count\":1} x|17",
                "{\"query\":-1,\"user\":\"a\",\"text\":\"t\",\"count\":1}|0",
                "{\"query\":4294967296,\"user\":\"a\",\"text\":\"t\",\"count\":1}|0",
                "{\"query\":99999999999999999999,\"user\":\"a\"}|0",
                "{\"query\":\"17\",\"user\":\"a\",\"text\":\"t\",\"count\":1}|0"
            })
    void malformedQueriesAreRefusedWithTheirNumberIfItCanBeRead(String line, int query) {
        byte[] bytes = line.getBytes(StandardCharsets.UTF_8);
        Messages.MalformedException failure =
                assertThrows(
                        Messages.MalformedException.class,
                        () -> Messages.readRequest(bytes, bytes.length));
        assertEquals(query, failure.query());
    }

    @Property(tries = 2000)
    void noBytesDoWorseThanBeingMalformed(@ForAll long seed) throws IOException {
        Random random = new Random(seed);
        byte[] line =
                Messages.line(new SearchRequest(17, "a", List.of("b", "c"), "text", 10, false));
        for (int changes = 1 + random.nextInt(4); changes > 0; changes--) {
            line[random.nextInt(line.length)] = (byte) random.nextInt(256);
        }
        try {
            Messages.readRequest(line, random.nextInt(line.length + 1));
        } catch (Messages.MalformedException expected) {
            // The only exception that may come.
        }
    }

    @Test
    void anUnknownFieldIsSkipped() throws Exception {
        byte[] line =
                ("{\"extra\":{\"query\":[1]},\"query\":17,\"user\":\"a\",\"text\":\"t\","
                                + "\"count\":1000}")
                        .getBytes(StandardCharsets.UTF_8);
        SearchRequest request = Messages.readRequest(line, line.length);
        assertEquals(new SearchRequest(17, "a", List.of(), "t", Hits.LIMIT, false), request);
    }

    @Property(tries = 500)
    void linesAreReadWhateverPiecesTheyComeIn(
            @ForAll @Size(max = 10) List<@IntRange(min = 0, max = 30) Integer> lengths,
            @ForAll long seed)
            throws IOException {
        int limit = 16;
        StringBuilder text = new StringBuilder();
        List<Integer> expected = new ArrayList<>();
        for (int length : lengths) {
            text.append("x".repeat(length)).append('\n');
            expected.add(length <= limit ? length : LineReader.TOO_LONG);
        }
        text.append("cut off");
        Random random = new Random(seed);
        InputStream pieces =
                new ByteArrayInputStream(text.toString().getBytes(StandardCharsets.UTF_8)) {
                    @Override
                    public int read(byte[] destination, int offset, int length) {
                        int piece = Math.min(length, 1 + random.nextInt(20));
                        return super.read(destination, offset, piece);
                    }
                };
        List<Integer> found = new ArrayList<>();
        try (LineReader lines = new LineReader(pieces, limit)) {
            for (int length = lines.next(); length != LineReader.END; length = lines.next()) {
                found.add(length);
            }
        }
        assertEquals(expected, found);
    }
}
