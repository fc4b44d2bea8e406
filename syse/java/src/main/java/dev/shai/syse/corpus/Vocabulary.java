// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Random;
import java.util.Set;

/** Invented words whose frequencies follow Zipf's law: the word of rank r is drawn as 1 / r. */
final class Vocabulary {
    private static final String CONSONANTS = "bdfghklmnprstvz";
    private static final String VOWELS = "aeiou";

    private final String[] words;
    private final double[] cumulative;

    /** A vocabulary of {@code size} different words. */
    Vocabulary(int size, Random random) {
        Set<String> invented = new LinkedHashSet<>();
        while (invented.size() < size) {
            // Frequent words are short, as in real languages.
            int syllables = invented.size() < 200 ? 1 + random.nextInt(2) : 2 + random.nextInt(3);
            invented.add(word(syllables, random));
        }
        words = invented.toArray(String[]::new);
        cumulative = new double[size];
        double sum = 0;
        for (int rank = 1; rank <= size; rank++) {
            sum += 1.0 / rank;
            cumulative[rank - 1] = sum;
        }
    }

    /** Draws a word by frequency. */
    String draw(Random random) {
        double point = random.nextDouble() * cumulative[cumulative.length - 1];
        int found = Arrays.binarySearch(cumulative, point);
        return words[found >= 0 ? found : Math.min(-found - 1, words.length - 1)];
    }

    /** Draws any word with equal probability. */
    String drawUniformly(Random random) {
        return words[random.nextInt(words.length)];
    }

    private static String word(int syllables, Random random) {
        StringBuilder letters = new StringBuilder();
        for (int i = 0; i < syllables; i++) {
            letters.append(CONSONANTS.charAt(random.nextInt(CONSONANTS.length())));
            letters.append(VOWELS.charAt(random.nextInt(VOWELS.length())));
        }
        if (random.nextInt(3) == 0) {
            letters.append(CONSONANTS.charAt(random.nextInt(CONSONANTS.length())));
        }
        return letters.toString();
    }
}
