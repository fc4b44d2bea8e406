// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.shai.syse.CommandFailure;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DictdDictionaryTest {
    private static final String DIGITS =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    @TempDir Path folder;
    private final ByteArrayOutputStream text = new ByteArrayOutputStream();
    private final List<String> index = new ArrayList<>();

    @BeforeEach
    void describeDatabase() {
        entry("about this dictionary", "00-database-info");
    }

    private void entry(String content, String... headwords) {
        byte[] bytes = content.getBytes(StandardCharsets.ISO_8859_1);
        for (String headword : headwords) {
            index.add(headword + "\t" + base64(text.size()) + "\t" + base64(bytes.length));
        }
        text.writeBytes(bytes);
    }

    private static String base64(int number) {
        String digit = DIGITS.substring(number % 64, number % 64 + 1);
        return number < 64 ? digit : base64(number / 64) + digit;
    }

    private DictdDictionary read() throws IOException {
        Path prefix = folder.resolve("small");
        Files.write(DictdDictionary.indexFile(prefix), index);
        try (OutputStream dict =
                new GZIPOutputStream(Files.newOutputStream(DictdDictionary.dictFile(prefix)))) {
            text.writeTo(dict);
        }
        return DictdDictionary.read(prefix);
    }

    private static List<Document> documents(DictdDictionary dictionary) {
        List<Document> documents = new ArrayList<>();
        for (int number = 0; number < dictionary.size(); number++) {
            documents.add(dictionary.document(number));
        }
        return documents;
    }

    @Test
    void mergesEntriesOfOneHeadwordAndHeadwordsOfOneEntry() throws IOException {
        entry("Aback, adv. Backward.\n", "Aback", "taken aback");
        entry("\n  aback, n. An abacus.\n", "aback");
        entry("Of no headword.", "second", "third");
        assertEquals(
                List.of(
                        new Document("Aback", "Aback, adv. Backward.\n\naback, n. An abacus.\n\n"),
                        new Document("second", "Of no headword.\n\n")),
                documents(read()));
    }

    @Test
    void replacesIllFormedUtf8() throws IOException {
        entry("Caf\u0092 con leche", "Caf");
        assertEquals("Caf\uFFFD con leche\n\n", documents(read()).get(0).text());
    }

    @ParameterizedTest
    @CsvSource({"no tabs,three fields", "word\tA\t!,base 64", "word\tA\tzz,beyond the end"})
    void namesTheLineThatIsDamaged(String line, String complaint) {
        index.add(line);
        CommandFailure failure = assertThrows(CommandFailure.class, this::read);
        assertTrue(failure.getMessage().contains("small.index:2: "), failure.getMessage());
        assertTrue(failure.getMessage().contains(complaint), failure.getMessage());
    }

    @Test
    void aMissingDictionarySaysWhatToInstall() {
        CommandFailure failure =
                assertThrows(
                        CommandFailure.class, () -> DictdDictionary.read(folder.resolve("none")));
        assertTrue(failure.getMessage().contains("apt-get install"), failure.getMessage());
    }
}
