// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.Visibility;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.lifecycle.AfterTry;
import net.jqwik.api.lifecycle.BeforeTry;

class MergeTest {
    private static final List<String> USERS = List.of("alice", "bob", "carol", "dave");
    private static final String[] WORDS = "ab ac ad ae af ag ah ai".split(" ");

    private Path folder;

    @BeforeTry
    void makeFolder() throws IOException {
        folder = Files.createTempDirectory("merge");
    }

    @AfterTry
    void removeFolder() throws IOException {
        try (var files = Files.walk(folder)) {
            for (Path path : files.sorted(java.util.Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    private static Map<Integer, SearchedIndex.Entry> documents(int count, Random random) {
        Map<Integer, SearchedIndex.Entry> documents = new HashMap<>();
        for (int conduit = 1; conduit <= count; conduit++) {
            Visibility visibility = Visibility.values()[random.nextInt(3)];
            String owner =
                    visibility == Visibility.PUBLIC
                            ? DocumentHeader.NO_OWNER
                            : USERS.get(random.nextInt(USERS.size()));
            DocumentHeader header =
                    new DocumentHeader(words(1 + random.nextInt(3), random), owner, visibility);
            String body = words(random.nextInt(30), random);
            documents.put(conduit, new SearchedIndex.Entry(header, body));
        }
        return documents;
    }

    private static String words(int count, Random random) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < count; i++) {
            // The square makes the first words frequent and the last ones rare.
            double point = random.nextDouble();
            text.append(WORDS[(int) (point * point * WORDS.length)]).append(' ');
        }
        return text.toString();
    }

    @Property(tries = 25)
    void shardsFindWhatOneIndexFinds(
            @ForAll long seed, @ForAll @IntRange(min = 2, max = 5) int shards) throws IOException {
        Random random = new Random(seed);
        Map<Integer, SearchedIndex.Entry> documents = documents(1 + random.nextInt(200), random);
        SearchedIndex.build(folder.resolve("one"), 1, documents);
        SearchedIndex.build(folder.resolve("many"), shards, documents);
        for (int i = 0; i < 8; i++) {
            SearchRequest request =
                    new SearchRequest(
                            i,
                            USERS.get(random.nextInt(USERS.size())),
                            USERS.subList(0, random.nextInt(3)),
                            words(1 + random.nextInt(2), random),
                            1 + random.nextInt(20),
                            false);
            Hits one = SearchedIndex.search(folder.resolve("one"), Fault.NONE, request);
            Hits many = SearchedIndex.search(folder.resolve("many"), Fault.NONE, request);
            assertArrayEquals(one.conduits(), many.conduits(), request.toString());
            assertArrayEquals(one.scores(), many.scores(), 1e-5f, request.toString());
        }
    }

    @Property(tries = 25)
    void aSearchFindsWhatMatchesAndMayBeSeen(@ForAll long seed) throws IOException {
        Random random = new Random(seed);
        Map<Integer, SearchedIndex.Entry> documents = documents(60, random);
        SearchedIndex.build(folder, 2, documents);
        String user = USERS.get(random.nextInt(USERS.size()));
        List<String> friends = USERS.subList(0, random.nextInt(3));
        String word = WORDS[random.nextInt(WORDS.length)];
        Set<Integer> expected = new TreeSet<>();
        documents.forEach(
                (conduit, entry) -> {
                    DocumentHeader header = entry.header();
                    boolean seen =
                            switch (header.visibility()) {
                                case PUBLIC -> true;
                                case PRIVATE -> header.owner().equals(user);
                                case FRIENDS ->
                                        header.owner().equals(user)
                                                || friends.contains(header.owner());
                            };
                    String text = header.title() + entry.body();
                    if (seen && List.of(text.split(" +")).contains(word)) {
                        expected.add(conduit);
                    }
                });
        assertEquals(expected, SearchedIndex.find(folder, user, friends, word));
    }

    @Property(tries = 200)
    void mergingEqualsSorting(@ForAll long seed, @ForAll @IntRange(min = 1, max = 12) int limit) {
        Random random = new Random(seed);
        int[] all =
                IntStream.rangeClosed(1, random.nextInt(20))
                        .map(i -> i * 10_000 + random.nextInt(4))
                        .toArray();
        Hits odd = ranked(IntStream.of(all).filter(value -> value / 10_000 % 2 == 1).toArray());
        Hits even = ranked(IntStream.of(all).filter(value -> value / 10_000 % 2 == 0).toArray());
        int[] expected = IntStream.of(ranked(all).conduits()).limit(limit).toArray();
        assertArrayEquals(expected, Hits.merge(odd, even, limit).conduits());
        assertArrayEquals(expected, Hits.merge(even, odd, limit).conduits());
    }

    /** Conduits by their last digit as score, then by number. */
    private static Hits ranked(int[] conduits) {
        int[] sorted =
                IntStream.of(conduits)
                        .boxed()
                        .sorted(
                                java.util.Comparator.<Integer>comparingInt(value -> -(value % 10))
                                        .thenComparing(value -> value))
                        .mapToInt(Integer::intValue)
                        .toArray();
        float[] scores = new float[sorted.length];
        for (int i = 0; i < scores.length; i++) {
            scores[i] = sorted[i] % 10;
        }
        return new Hits(sorted, scores);
    }
}
