// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

/**
 * The hits of a search, best first: higher scores, then lower conduit numbers.
 *
 * @param conduits conduit numbers, unsigned
 * @param scores the score of each
 * @param text null, except for the fault that writes text to a channel for conduits
 */
@SuppressWarnings("ArrayRecordComponent") // never compared, made for every query
public record Hits(int[] conduits, float[] scores, byte[] text) {
    /** The most results of one query: what one transfer record holds. */
    public static final int LIMIT = 64;

    /** Nothing found. */
    public static final Hits NONE = new Hits(new int[0], new float[0]);

    public Hits(int[] conduits, float[] scores) {
        this(conduits, scores, null);
    }

    /** How many there are. */
    public int count() {
        return conduits.length;
    }

    /** The best {@code limit} hits of two searches. */
    public static Hits merge(Hits first, Hits second, int limit) {
        int count = Math.min(limit, first.count() + second.count());
        int[] conduits = new int[count];
        float[] scores = new float[count];
        int a = 0;
        int b = 0;
        for (int i = 0; i < count; i++) {
            boolean fromFirst =
                    b == second.count() || (a < first.count() && first.precedes(a, second, b));
            conduits[i] = fromFirst ? first.conduits[a] : second.conduits[b];
            scores[i] = fromFirst ? first.scores[a++] : second.scores[b++];
        }
        return new Hits(conduits, scores);
    }

    private boolean precedes(int index, Hits other, int otherIndex) {
        int order = Float.compare(other.scores[otherIndex], scores[index]);
        return order < 0
                || (order == 0
                        && Integer.compareUnsigned(conduits[index], other.conduits[otherIndex])
                                < 0);
    }
}
