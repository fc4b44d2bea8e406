// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.shai.syse.CommandFailure;
import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.Visibility;
import dev.shai.syse.index.IndexBuild;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ShardTest {
    private static final SearchRequest WORD =
            new SearchRequest(1, "bob", List.of(), "word", 10, false);

    @TempDir Path folder;
    private final Complaints complaints = new Complaints(System.err);

    private void build(int shards, int... conduits) throws IOException {
        Map<Integer, SearchedIndex.Entry> documents = new java.util.HashMap<>();
        for (int conduit : conduits) {
            DocumentHeader header =
                    new DocumentHeader("word", DocumentHeader.NO_OWNER, Visibility.PUBLIC);
            documents.put(conduit, new SearchedIndex.Entry(header, "text"));
        }
        SearchedIndex.build(folder, shards, documents);
    }

    private Shard open(String name) throws IOException {
        return new Shard(folder.resolve(name), Fault.NONE, complaints);
    }

    @Test
    void aNewCommitIsSearchedAfterARefresh() throws IOException {
        build(2, 2, 4);
        try (Shard shard = open("0")) {
            shard.warmUp(3);
            assertArrayEquals(new int[] {2, 4}, shard.engine().search(WORD).conduits());
            build(2, 2, 4, 6);
            assertArrayEquals(new int[] {2, 4}, shard.engine().search(WORD).conduits());
            shard.refreshNow();
            assertArrayEquals(new int[] {2, 4, 6}, shard.engine().search(WORD).conduits());
        }
    }

    @Test
    void aCommitOnTopOfAnotherIsSearchedAfterARefresh() throws IOException {
        build(2, 1, 2, 4);
        try (Shard even = open("0");
                Shard odd = open("1");
                IndexBuild index = IndexBuild.continued(folder, 2)) {
            for (int round = 0; round < 3; round++) {
                DocumentHeader header =
                        new DocumentHeader("word", DocumentHeader.NO_OWNER, Visibility.PUBLIC);
                index.add(6 + 2 * round, header, new StringReader("text"));
                index.delete(new int[] {2 + 2 * round});
                index.commit();
                even.refreshNow();
                odd.refreshNow();
                assertArrayEquals(
                        new int[] {4 + 2 * round, 6 + 2 * round},
                        even.engine().search(WORD).conduits());
                assertArrayEquals(new int[] {1}, odd.engine().search(WORD).conduits());
            }
        }
        assertEquals(0, complaints.count());
    }

    @Test
    void shardsOfDifferentBuildsAreNotMixed() throws IOException {
        build(2, 1, 2);
        Path kept = folder.resolveSibling("kept");
        Files.move(folder.resolve("1"), kept);
        build(2, 1, 2, 3, 4);
        try (Shard shard = open("0")) {
            try (var files = Files.list(folder.resolve("1"))) {
                for (Path file : files.toList()) {
                    Files.delete(file);
                }
            }
            Files.delete(folder.resolve("1"));
            Files.move(kept, folder.resolve("1"));
            shard.refreshNow();
            assertEquals(2, shard.engine().search(WORD).count());
        }
        CommandFailure failure = assertThrows(CommandFailure.class, () -> open("0"));
        assertTrue(failure.getMessage().contains("run the indexer"), failure.getMessage());
    }

    @Test
    void aMissingIndexIsNamedWithItsRemedy() throws IOException {
        Files.createDirectories(folder.resolve("empty"));
        for (String name : List.of("none", "empty")) {
            CommandFailure failure = assertThrows(CommandFailure.class, () -> open(name));
            assertTrue(failure.getMessage().contains("run the indexer"), failure.getMessage());
        }
    }

    @Test
    void textWithoutWordsFindsNothing() throws IOException {
        build(1, 1);
        try (Shard shard = open("0")) {
            SearchRequest blank = new SearchRequest(1, "bob", List.of(), " -*()\" ", 10, false);
            assertEquals(0, shard.engine().search(blank).count());
        }
    }

    @Test
    void aShardThatEndsCostsItsHitsAndNothingElse() throws IOException {
        build(2, 1, 2);
        byte[] sent = "not json\n".getBytes(StandardCharsets.UTF_8);
        try (Shard shard = open("0")) {
            Engine both =
                    shard.merging(OutputStream.nullOutputStream(), new ByteArrayInputStream(sent));
            assertArrayEquals(new int[] {2}, both.search(WORD).conduits());
            assertTrue(complaints.count() > 0);
        }
    }
}
