// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.util.List;
import java.util.Map;

/**
 * The parameters of a corpus: two runs with equal parameters write the same bytes.
 *
 * @param source the source of the text, as in "gcide"
 * @param inputs SHA-256 of the input files, by path
 * @param documents how many; 0 for as many as there are
 * @param users how many
 * @param friends how many each user should have
 * @param regions where users live and documents are blocked
 * @param seed of all random choices
 */
record CorpusParameters(
        String source,
        Map<String, String> inputs,
        int documents,
        int users,
        int friends,
        List<String> regions,
        long seed) {
    public CorpusParameters {
        inputs = Map.copyOf(inputs);
        regions = List.copyOf(regions);
    }
}
