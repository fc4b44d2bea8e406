// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.util.AbstractList;
import java.util.List;
import java.util.Random;

/**
 * Documents of invented words. Each is derived from the seed and its number, so a corpus of any
 * size can be streamed.
 */
final class GeneratedSource implements DocumentSource {
    private static final int VOCABULARY = 50_000;
    private static final int MEDIAN_WORDS = 120;
    private static final int MOST_WORDS = 5_000;
    private static final int WORDS_PER_LINE = 12;

    private final RandomStreams random;
    private final Vocabulary vocabulary;
    private final int count;
    private int position;

    /** {@code count} documents. */
    GeneratedSource(int count, RandomStreams random) {
        this.random = random;
        this.vocabulary = new Vocabulary(VOCABULARY, random.stream("vocabulary"));
        this.count = count;
    }

    @Override
    public Document next() {
        if (position == count) {
            return null;
        }
        int number = position++;
        return new Document(title(number), text(number));
    }

    @Override
    public List<String> titles(int limit) {
        return new AbstractList<>() {
            @Override
            public String get(int index) {
                return title(index);
            }

            @Override
            public int size() {
                return Math.min(limit, count);
            }
        };
    }

    /** Two to four words; the first is a rare one, so that most titles differ. */
    private String title(int number) {
        Random draws = random.stream("title", number);
        StringBuilder title = new StringBuilder(vocabulary.drawUniformly(draws));
        for (int words = 1 + draws.nextInt(3); words > 0; words--) {
            title.append(' ').append(vocabulary.draw(draws));
        }
        return title.toString();
    }

    private String text(int number) {
        Random draws = random.stream("text", number);
        // Log-normal, as lengths of real documents are.
        int words = (int) Math.min(MOST_WORDS, 1 + MEDIAN_WORDS * Math.exp(draws.nextGaussian()));
        StringBuilder text = new StringBuilder();
        for (int i = 1; i <= words; i++) {
            text.append(vocabulary.draw(draws)).append(i % WORDS_PER_LINE == 0 ? '\n' : ' ');
        }
        return text.append('\n').toString();
    }

    @Override
    public void close() {
        // Nothing is open.
    }
}
