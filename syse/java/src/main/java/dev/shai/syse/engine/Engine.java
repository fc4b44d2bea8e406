// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.io.IOException;

/** Something that answers queries. Called from many threads at once. */
public interface Engine {
    /**
     * Answers one query with at most {@link SearchRequest#count} hits.
     *
     * @throws IOException when the index cannot be read; other queries may still be answered
     */
    Hits search(SearchRequest request) throws IOException;
}
