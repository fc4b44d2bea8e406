// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.search.CollectionStatistics;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermStatistics;

/**
 * Searches one shard with the statistics of all: a term is as rare as in the whole index, so that a
 * merged answer equals the answer of a single index.
 */
final class StatisticsSearcher extends IndexSearcher {
    private final List<IndexReader> shards;
    private final Map<String, CollectionStatistics> collections = new ConcurrentHashMap<>();

    /**
     * @param searched the shard that is searched
     * @param shards all shards, the searched one too
     */
    StatisticsSearcher(IndexReader searched, List<IndexReader> shards) {
        super(searched);
        this.shards = List.copyOf(shards);
    }

    @Override
    public TermStatistics termStatistics(Term term, int docFreq, long totalTermFreq)
            throws IOException {
        long documents = 0;
        long occurrences = 0;
        for (IndexReader shard : shards) {
            boolean searched = shard == getIndexReader();
            documents += searched ? docFreq : shard.docFreq(term);
            occurrences += searched ? totalTermFreq : shard.totalTermFreq(term);
        }
        return new TermStatistics(term.bytes(), documents, occurrences);
    }

    @Override
    public CollectionStatistics collectionStatistics(String field) throws IOException {
        CollectionStatistics known = collections.get(field);
        if (known == null) {
            known = sum(field);
            if (known != null) {
                collections.put(field, known);
            }
        }
        return known;
    }

    private CollectionStatistics sum(String field) throws IOException {
        long maxDoc = 0;
        long docCount = 0;
        long sumTotalTermFreq = 0;
        long sumDocFreq = 0;
        for (IndexReader shard : shards) {
            Terms terms = MultiTerms.getTerms(shard, field);
            maxDoc += shard.maxDoc();
            if (terms != null) {
                docCount += terms.getDocCount();
                sumTotalTermFreq += terms.getSumTotalTermFreq();
                sumDocFreq += terms.getSumDocFreq();
            }
        }
        return docCount == 0
                ? null
                : new CollectionStatistics(field, maxDoc, docCount, sumTotalTermFreq, sumDocFreq);
    }
}
