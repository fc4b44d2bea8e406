// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.index;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.shai.syse.CommandFailure;
import dev.shai.syse.DocumentFolder;
import dev.shai.syse.document.Visibility;
import dev.shai.syse.engine.SearchedIndex;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class IndexFollowerTest {
    @TempDir Path folder;
    private Path index;
    private DocumentFolder documents;

    @BeforeEach
    void makeFolders() {
        index = folder.resolve("index");
        documents = new DocumentFolder(folder.resolve("view"));
    }

    /** One step of a new follower, as after its process was ended. */
    private IndexFollower.Step restarted() throws IOException, InterruptedException {
        try (IndexBuild build = IndexBuild.continued(index, 2)) {
            return new IndexFollower(build, documents.path(), 2, System.err).step();
        }
    }

    private void add(int conduit) {
        documents.add(conduit, "word", "-", Visibility.PUBLIC, "text of " + conduit);
    }

    private void remove(int conduit) throws IOException {
        Files.delete(documents.path().resolve("" + conduit));
    }

    private Set<Integer> found() throws IOException {
        return SearchedIndex.find(index, "bob", List.of(), "word");
    }

    @Test
    void documentsComeAndGo() throws Exception {
        add(1);
        add(2);
        try (IndexBuild build = IndexBuild.continued(index, 2)) {
            IndexFollower follower = new IndexFollower(build, documents.path(), 2, System.err);
            assertFalse(follower.step().isEmpty());
            assertEquals(Set.of(1, 2), found());
            assertTrue(follower.step().isEmpty(), "nothing has changed");
            add(3); // within the resolution of the folder's time
            assertEquals(1, follower.step().outcomes().get(DocumentIndexer.Outcome.INDEXED));
            assertEquals(Set.of(1, 2, 3), found());
            remove(1); // and with it the content that number 4 replaces
            documents.add(4, "word", "-", Visibility.PUBLIC, "another text of 1");
            assertEquals(1, follower.step().removed());
            assertEquals(Set.of(2, 3, 4), found());
        }
        remove(2);
        add(5);
        assertEquals(1, restarted().removed());
        assertEquals(Set.of(3, 4, 5), found());
        assertTrue(restarted().isEmpty(), "the index says what it has");
    }

    /** Facts and choices move documents to other folders at any time, with their numbers. */
    @Test
    void whatIsNotWhereItWasListedIsLookedForAgain() throws Exception {
        Path moved = documents.path().resolve("1");
        Files.createSymbolicLink(moved, folder.resolve("elsewhere"));
        try (IndexBuild build = IndexBuild.continued(index, 2)) {
            IndexFollower follower = new IndexFollower(build, documents.path(), 2, System.err);
            assertEquals(1, follower.step().outcomes().get(DocumentIndexer.Outcome.VANISHED));
            Files.delete(moved);
            add(1);
            follower.step();
            assertEquals(Set.of(1), found());
        }
    }

    /** What could not be read is in the index soon after it can be. */
    @Test
    void whatCouldNotBeReadIsTriedAgain() throws Exception {
        Path refused = documents.path().resolve("1");
        Files.createSymbolicLink(refused, refused); // root may read everything else
        try (IndexBuild build = IndexBuild.continued(index, 2)) {
            IndexFollower follower = new IndexFollower(build, documents.path(), 2, System.err);
            Set<Integer> tries = new TreeSet<>();
            for (int step = 0; step <= 31; step++) {
                if (!follower.step().isEmpty()) {
                    tries.add(step);
                }
            }
            assertEquals(Set.of(0, 1, 3, 7, 15, 31), tries);
            Files.delete(refused);
            add(1);
            int steps = 0;
            for (; found().isEmpty(); steps++) {
                follower.step();
            }
            assertEquals(32, steps);
        }
    }

    /** As when a fact moves a document that was refused to another class. */
    @Test
    void whatMovesIsTriedAgainAtOnce() throws Exception {
        Path refused = documents.path().resolve("1");
        Files.createSymbolicLink(refused, refused);
        try (IndexBuild build = IndexBuild.continued(index, 2)) {
            IndexFollower follower = new IndexFollower(build, documents.path(), 2, System.err);
            for (int step = 0; step < 4; step++) {
                follower.step();
            }
            Files.delete(refused);
            DocumentFolder other = new DocumentFolder(documents.path().resolve("class-2"));
            other.add(1, "word", "-", Visibility.PUBLIC, "text");
            follower.step();
            assertEquals(Set.of(1), found());
            Files.delete(other.path().resolve("1"));
            follower.step();
            assertEquals(Set.of(), found());
        }
    }

    @Test
    void randomChangesGiveTheIndexOfANewBuild() throws Exception {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        Set<Integer> present = new TreeSet<>();
        int next = 1;
        try (IndexBuild build = IndexBuild.continued(index, 2)) {
            IndexFollower follower = new IndexFollower(build, documents.path(), 2, System.err);
            for (int step = 0; step < 20; step++) {
                for (int change = random.nextInt(20); change > 0; change--) {
                    if (present.isEmpty() || random.nextInt(3) > 0) {
                        add(next);
                        present.add(next++);
                    } else {
                        int gone = List.copyOf(present).get(random.nextInt(present.size()));
                        remove(gone);
                        present.remove(gone);
                    }
                }
                follower.step();
                assertEquals(
                        present,
                        new TreeSet<>(
                                java.util.Arrays.stream(build.conduits().without(new ConduitSet()))
                                        .boxed()
                                        .toList()),
                        "seed " + seed + ", step " + step);
            }
        }
    }

    @Test
    void whatIsNoDocumentIsLookedAtOnce() throws Exception {
        documents.write("7", "no header at all\n");
        try (IndexBuild build = IndexBuild.continued(index, 2)) {
            IndexFollower follower = new IndexFollower(build, documents.path(), 1, System.err);
            assertEquals(1, follower.step().outcomes().get(DocumentIndexer.Outcome.MALFORMED));
            assertTrue(follower.step().isEmpty());
        }
    }

    @Test
    void aCommitThatWasBegunIsFinished() throws Exception {
        add(1);
        add(2);
        restarted();
        // Shard 1 is of another commit now, as if a process was killed between two of them.
        Path other = folder.resolve("other");
        try (IndexBuild build = IndexBuild.continued(other, 2)) {
            new IndexFollower(build, documents.path(), 1, System.err).step();
        }
        Files.move(index.resolve("1"), folder.resolve("former"));
        Files.move(other.resolve("1"), index.resolve("1"));
        CommandFailure torn = assertThrows(CommandFailure.class, this::found);
        assertTrue(torn.getMessage().contains("not built together"), torn.getMessage());
        assertTrue(restarted().isEmpty(), "no document has changed");
        assertEquals(Set.of(1, 2), found());
    }

    @Test
    void thereIsOneWriter() throws Exception {
        add(1);
        restarted();
        try (IndexBuild build = IndexBuild.continued(index, 2)) {
            CommandFailure second =
                    assertThrows(CommandFailure.class, () -> new IndexBuild(index, 2));
            assertTrue(second.getMessage().contains("another process"), second.getMessage());
            assertTrue(build.isWhole());
            assertEquals(Set.of(1), found());
        }
        new IndexBuild(index, 2).close();
        CommandFailure shards =
                assertThrows(CommandFailure.class, () -> IndexBuild.continued(index, 1));
        assertTrue(shards.getMessage().contains("number of shards"), shards.getMessage());
    }

    @Test
    void numbersAreUnsigned() {
        ConduitSet numbers = new ConduitSet();
        for (int number : new int[] {5, -1, Integer.MIN_VALUE, 1, 7}) {
            numbers.add(number);
        }
        ConduitSet other = new ConduitSet();
        other.add(5);
        other.add(Integer.MAX_VALUE);
        assertArrayEquals(new int[] {1, 7, Integer.MIN_VALUE, -1}, numbers.without(other));
        assertFalse(numbers.contains(-2));
        assertTrue(numbers.contains(Integer.MIN_VALUE));
    }
}
