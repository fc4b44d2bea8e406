// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.index;

import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.standard.StandardAnalyzer;

/** The fields of a document in the index, for both the indexer and the engine. */
public final class IndexFields {
    /** The conduit's number: numeric doc values, also the order of documents in a segment. */
    public static final String CONDUIT = "conduit";

    /** Indexed with positions, and stored. */
    public static final String TITLE = "title";

    /** Indexed with positions, not stored. */
    public static final String BODY = "body";

    /** A user's name as one term; "-" for public documents. */
    public static final String OWNER = "owner";

    /** The visibility's label as one term. */
    public static final String VISIBILITY = "visibility";

    /** Commit data: how many shards were built together. */
    public static final String COMMIT_SHARDS = "shards";

    /** Commit data: the same text in all shards that were built together. */
    public static final String COMMIT_BUILD = "build";

    private IndexFields() {}

    /** The analyzer of titles, bodies and queries: Unicode words in lower case, no stop words. */
    public static Analyzer analyzer() {
        return new StandardAnalyzer();
    }
}
