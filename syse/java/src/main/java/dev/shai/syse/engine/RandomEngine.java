// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.DocumentTree;
import dev.shai.syse.document.Utf8Reader;
import dev.shai.syse.document.Visibility;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Answers with random documents that the user may read, after keeping a core busy for a given time:
 * a search engine with a known cost, to show the cost of everything else.
 */
public final class RandomEngine implements Engine {
    private static final long HEADER_LIMIT = 16 * 4096;
    private static final int[] NOTHING = {};

    private final Map<String, int[]> own = new HashMap<>();
    private final Map<String, int[]> friendsOnly = new HashMap<>();
    private int[] everybodys = NOTHING;
    private final long busyNanos;

    /**
     * Reads the headers of all documents.
     *
     * @param documents as for the indexer
     * @param busyNanos how long each query takes
     */
    public RandomEngine(Path documents, long busyNanos, Complaints complaints) throws IOException {
        this.busyNanos = busyNanos;
        Map<String, Numbers> owned = new HashMap<>();
        Map<String, Numbers> shown = new HashMap<>();
        Numbers open = new Numbers();
        DocumentTree.walk(
                documents,
                new DocumentTree.Visitor() {
                    @Override
                    public void document(int conduit, Path file) {
                        try (Utf8Reader reader =
                                new Utf8Reader(Files.newInputStream(file), HEADER_LIMIT)) {
                            add(conduit, DocumentHeader.read(reader));
                        } catch (IOException broken) {
                            passedOver(file, broken.getMessage());
                        }
                    }

                    private void add(int conduit, DocumentHeader header) {
                        if (header.visibility() == Visibility.PUBLIC) {
                            open.add(conduit);
                            return;
                        }
                        owned.computeIfAbsent(header.owner(), key -> new Numbers()).add(conduit);
                        if (header.visibility() == Visibility.FRIENDS) {
                            shown.computeIfAbsent(header.owner(), key -> new Numbers())
                                    .add(conduit);
                        }
                    }

                    @Override
                    public void passedOver(Path path, String reason) {
                        complaints.add(path + ": " + reason);
                    }
                });
        owned.forEach((owner, numbers) -> own.put(owner, numbers.toArray()));
        shown.forEach((owner, numbers) -> friendsOnly.put(owner, numbers.toArray()));
        everybodys = open.toArray();
    }

    /** The number of documents that a user may read. */
    public int size() {
        return everybodys.length + own.values().stream().mapToInt(numbers -> numbers.length).sum();
    }

    @Override
    public Hits search(SearchRequest request) {
        long until = System.nanoTime() + busyNanos;
        int[] mine = own.getOrDefault(request.user(), NOTHING);
        int readable = everybodys.length + mine.length;
        for (String friend : request.friends()) {
            readable += friendsOnly.getOrDefault(friend, NOTHING).length;
        }
        int[] conduits = new int[Math.min(request.count(), readable)];
        for (int i = 0; i < conduits.length; i++) {
            int place = ThreadLocalRandom.current().nextInt(readable);
            conduits[i] = readable(place, mine, request);
        }
        while (System.nanoTime() < until) {
            Thread.onSpinWait();
        }
        return new Hits(conduits, new float[conduits.length]);
    }

    /** The document at a place in the sequence of all that the user may read. */
    private int readable(int place, int[] mine, SearchRequest request) {
        if (place < everybodys.length) {
            return everybodys[place];
        }
        int rest = place - everybodys.length;
        if (rest < mine.length) {
            return mine[rest];
        }
        rest -= mine.length;
        for (String friend : request.friends()) {
            int[] shown = friendsOnly.getOrDefault(friend, NOTHING);
            if (rest < shown.length) {
                return shown[rest];
            }
            rest -= shown.length;
        }
        throw new IllegalStateException("place " + place + " is beyond what the user may read");
    }

    /** A growing array of numbers. */
    private static final class Numbers {
        private int[] values = new int[4];
        private int count;

        void add(int value) {
            if (count == values.length) {
                values = Arrays.copyOf(values, 2 * count);
            }
            values[count++] = value;
        }

        int[] toArray() {
            return Arrays.copyOf(values, count);
        }
    }
}
