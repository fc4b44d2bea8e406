// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * The titles for which users search: all of them in random order of popularity, or of a long stream
 * a uniform sample (reservoir sampling, Vitter's algorithm R).
 */
final class QuerySample {
    /** The most titles kept. */
    static final int LIMIT = 200_000;

    private final Random random;
    private final List<String> titles = new ArrayList<>();
    private long seen;

    QuerySample(Random random) {
        this.random = random;
    }

    /** Offers a title. */
    void add(String title) {
        seen++;
        if (titles.size() < LIMIT) {
            titles.add(title);
            return;
        }
        long place = Math.floorMod(random.nextLong(), seen);
        if (place < LIMIT) {
            titles.set((int) place, title);
        }
    }

    /** The sample, most popular first. */
    List<String> byPopularity() {
        List<String> ordered = new ArrayList<>(titles.size());
        for (int place : RandomStreams.permutation(titles.size(), random)) {
            ordered.add(titles.get(place));
        }
        return ordered;
    }
}
