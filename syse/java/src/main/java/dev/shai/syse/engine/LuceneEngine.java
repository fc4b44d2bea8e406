// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.io.IOException;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TopScoreDocCollectorManager;

/** Searches one shard of the index. */
class LuceneEngine implements Engine {
    private final ShardReaders readers;
    private final RestrictedQueries queries;

    /**
     * @param readers stay the caller's to close
     * @param queries decides what each request may find
     */
    LuceneEngine(ShardReaders readers, RestrictedQueries queries) {
        this.readers = readers;
        this.queries = queries;
    }

    @Override
    public Hits search(SearchRequest request) throws IOException {
        ShardReader reader = readers.acquire();
        try {
            Query query = queries.query(request);
            int count = request.count();
            // Exact totals are not needed, so documents that cannot be among the results are
            // skipped.
            var best = new TopScoreDocCollectorManager(count, null, count);
            return answer(reader, reader.searcher().search(query, best).scoreDocs);
        } finally {
            readers.release(reader);
        }
    }

    /** The answer for the hits, made while the reader is still held. */
    protected Hits answer(ShardReader reader, ScoreDoc[] found) throws IOException {
        return reader.hits(found);
    }
}
