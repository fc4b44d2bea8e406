// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import dev.shai.syse.CommandFailure;
import java.util.AbstractList;
import java.util.List;
import java.util.Random;

/** A random sample of a dictionary's headwords, in random order. */
final class DictionarySource implements DocumentSource {
    private final DictdDictionary dictionary;
    private final int[] order;
    private final int count;
    private int position;

    /**
     * @param count how many documents to give
     * @throws CommandFailure when the dictionary has fewer
     */
    DictionarySource(DictdDictionary dictionary, int count, Random random) {
        if (count > dictionary.size()) {
            throw new CommandFailure(
                    "the dictionary makes "
                            + dictionary.size()
                            + " documents; ask for at most that many instead of "
                            + count
                            + ", or use --from generated");
        }
        this.dictionary = dictionary;
        this.order = RandomStreams.permutation(dictionary.size(), random);
        this.count = count;
    }

    @Override
    public Document next() {
        return position == count ? null : dictionary.document(order[position++]);
    }

    @Override
    public List<String> titles(int limit) {
        return new AbstractList<>() {
            @Override
            public String get(int index) {
                return dictionary.title(order[index]);
            }

            @Override
            public int size() {
                return Math.min(limit, count);
            }
        };
    }

    @Override
    public void close() {
        // Everything is in memory.
    }
}
