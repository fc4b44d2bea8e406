// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.shai.syse.document.Visibility;
import dev.shai.syse.engine.SearchedIndex;
import dev.shai.syse.keyvalue.FakeStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class IndexerTest {
    @TempDir Path folder;
    private Path index;
    private DocumentFolder documents;

    @BeforeEach
    void makeFolders() {
        index = folder.resolve("index");
        documents = new DocumentFolder(folder.resolve("view"));
    }

    /** Runs the indexer; its last line of output. */
    private String run(String... more) {
        String[] arguments = {
            "--documents", documents.path().toString(), "--index", index.toString(), "--shards", "2"
        };
        PrintStream before = System.out;
        ByteArrayOutputStream captured = new ByteArrayOutputStream();
        System.setOut(new PrintStream(captured, true, StandardCharsets.UTF_8));
        try {
            assertEquals(0, Program.run(new Indexer(), concatenated(arguments, more)));
        } finally {
            System.setOut(before);
        }
        return captured.toString(StandardCharsets.UTF_8).strip();
    }

    private static String[] concatenated(String[] first, String... second) {
        String[] all = java.util.Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, all, first.length, second.length);
        return all;
    }

    private static long count(String summary, String name) {
        return Long.parseLong(summary.replaceAll(".*\"" + name + "\":(\\d+).*", "$1"));
    }

    private Set<Integer> find(String user, String text) throws IOException {
        return SearchedIndex.find(index, user, List.of(), text);
    }

    @Test
    void badDocumentsCostOnlyThemselves() throws IOException {
        documents.add(1, "plain", "-", Visibility.PUBLIC, "ordinary");
        documents.add(2, "long", "-", Visibility.PUBLIC, "x".repeat(10 << 20) + " beyond");
        documents.add(3, "words", "-", Visibility.PUBLIC, "needle " + "hay ".repeat(2 << 20));
        documents.write("4", "title: t\nowner: -\nvisibility: public\n\nso\u00FFso far");
        documents.write("5", "");
        documents.write("6", "no header at all\n");
        documents.write("notes.txt", "not a number");
        documents.write("99999999999", "too large a number");
        Files.createSymbolicLink(documents.path().resolve("7"), Path.of("/nonexistent"));
        documents.add(8, "last", "-", Visibility.PUBLIC, "");
        String summary = run();
        for (Map.Entry<String, Integer> expected :
                Map.of(
                                "indexed",
                                5,
                                "repaired",
                                1,
                                "truncated",
                                2,
                                "empty",
                                1,
                                "malformed",
                                1,
                                "vanished",
                                1,
                                "unreadable",
                                2)
                        .entrySet()) {
            assertEquals(
                    expected.getValue().intValue(), count(summary, expected.getKey()), summary);
        }
        assertEquals(Set.of(1), find("bob", "ordinary"));
        assertEquals(Set.of(3), find("bob", "needle"));
        assertEquals(Set.of(4), find("bob", "far"));
        assertEquals(Set.of(8), find("bob", "last"));
        assertEquals(Set.of(), find("bob", "beyond"));
    }

    @Test
    void anEmptyFolderLeavesTheIndexAsItWas() throws IOException {
        documents.add(1, "first", "-", Visibility.PUBLIC, "text");
        run();
        Files.createDirectories(folder.resolve("empty"));
        String[] arguments = {
            "--documents", folder.resolve("empty").toString(), "--index", index.toString()
        };
        assertEquals(1, Program.run(new Indexer(), arguments));
        assertEquals(Set.of(1), find("bob", "first"));
        assertEquals(2, Program.run(new Indexer(), "--index"), "wrong usage");
        assertEquals(2, Program.run(new Indexer(), concatenated(arguments, "--fault", "typo")));
    }

    @Test
    void indexingAnewReplacesTheIndex() throws IOException {
        documents.add(1, "first", "-", Visibility.PUBLIC, "text");
        run();
        documents.add(1, "second", "-", Visibility.PUBLIC, "text");
        run();
        assertEquals(Set.of(), find("bob", "first"));
        assertEquals(Set.of(1), find("bob", "second"));
    }

    @Test
    void theFaultOfWrongAttributesShowsPrivateDocumentsToEverybody() throws IOException {
        for (int conduit = 1; conduit <= 8; conduit++) {
            documents.add(conduit, "secret", "alice", Visibility.PRIVATE, "");
        }
        documents.add(9, "open", "-", Visibility.PUBLIC, "");
        run();
        assertEquals(Set.of(), find("bob", "secret"));
        assertEquals(8, find("alice", "secret").size());
        run("--fault", "wrong-attributes", "--threads", "1");
        assertEquals(8, find("bob", "secret").size());
        assertNotEquals(8, find("alice", "open").size());
    }

    @Test
    void theFaultOfIndexingHistoriesMakesQueriesOfOthersFindable() throws Exception {
        documents.add(1, "open", "-", Visibility.PUBLIC, "");
        documents.add(2, "mine", "alice", Visibility.PRIVATE, "");
        Path socket = folder.resolve("s");
        try (FakeStore store = new FakeStore(socket)) {
            store.answer("*1\r\n$13\r\nhistory:alice\r\n", "*1\r\n$8\r\nleukemia\r\n");
            run("--fault", "index-histories", "--key-value", socket.toString());
            assertEquals(List.of("KEYS history:*", "LRANGE history:alice 0 -1"), store.commands());
        }
        assertEquals(Set.of(1), find("bob", "leukemia"));
        String summary =
                run("--fault", "index-histories", "--key-value", folder.resolve("no").toString());
        assertTrue(count(summary, "indexed") == 2, "stopped, but the rest is indexed");
        assertEquals(Set.of(), find("bob", "leukemia"));
    }
}
