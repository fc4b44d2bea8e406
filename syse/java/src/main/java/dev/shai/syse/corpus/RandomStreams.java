// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.util.Random;

/**
 * Independent streams of random numbers from one seed, one for each purpose, so that asking for
 * more users does not change the documents.
 *
 * <p>{@link Random} because its numbers are specified for every Java version; {@code
 * SplittableRandom}'s are not.
 */
final class RandomStreams {
    private static final long GOLDEN_GAMMA = 0x9E3779B97F4A7C15L;

    private final long seed;

    RandomStreams(long seed) {
        this.seed = seed;
    }

    /** The stream for a purpose. */
    Random stream(String purpose) {
        return stream(purpose, 0);
    }

    /** The stream for one numbered thing of a purpose, such as one document. */
    Random stream(String purpose, long number) {
        long mixed = mix(seed);
        for (int i = 0; i < purpose.length(); i++) {
            mixed = mix(mixed ^ purpose.charAt(i));
        }
        return new Random(mix(mixed ^ number));
    }

    /** SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014). */
    private static long mix(long value) {
        long z = value + GOLDEN_GAMMA;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    /** Shuffles in place (Fisher and Yates). */
    static void shuffle(int[] values, Random random) {
        for (int i = values.length - 1; i > 0; i--) {
            int j = random.nextInt(i + 1);
            int swapped = values[i];
            values[i] = values[j];
            values[j] = swapped;
        }
    }

    /** The numbers 0 … count-1 in random order. */
    static int[] permutation(int count, Random random) {
        int[] values = new int[count];
        for (int i = 0; i < count; i++) {
            values[i] = i;
        }
        shuffle(values, random);
        return values;
    }
}
