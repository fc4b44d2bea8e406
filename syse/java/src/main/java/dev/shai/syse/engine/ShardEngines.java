// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import dev.shai.syse.index.IndexFields;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.lucene.index.StoredFields;
import org.apache.lucene.search.ScoreDoc;

/** Makes the engine of one shard, sound or with a fault injected. */
final class ShardEngines {
    private ShardEngines() {}

    /** An engine over {@code readers}, which stay the caller's to close. */
    static Engine make(ShardReaders readers, Fault fault) {
        return switch (fault) {
            case NONE -> new LuceneEngine(readers, new RestrictedQueries());
            case PREMATURE_END ->
                    new HalfChecked(
                            new LuceneEngine(readers, new RestrictedQueries()),
                            new LuceneEngine(readers, new FaultyQueries(fault)));
            case TEXT_INSTEAD_OF_IDS -> new TitleEngine(readers, new FaultyQueries(fault));
            default -> new LuceneEngine(readers, new FaultyQueries(fault));
        };
    }

    /** Answers with allowed hits in the first half, and with any in the second. */
    private record HalfChecked(Engine checked, Engine unchecked) implements Engine {
        @Override
        public Hits search(SearchRequest request) throws IOException {
            int[] allowed = checked.search(request).conduits();
            Hits any = unchecked.search(request);
            int[] first = IntStream.of(allowed).limit(request.count() / 2).toArray();
            Set<Integer> present = new HashSet<>();
            IntStream.of(first).forEach(present::add);
            int[] conduits =
                    IntStream.concat(
                                    IntStream.of(first),
                                    IntStream.of(any.conduits())
                                            .filter(conduit -> !present.contains(conduit)))
                            .limit(request.count())
                            .toArray();
            float[] scores = new float[conduits.length];
            for (int i = 0; i < scores.length; i++) {
                scores[i] = scores.length - i; // keeps the order when shards are merged
            }
            return new Hits(conduits, scores);
        }
    }

    /** Answers with the titles of what it found. */
    private static final class TitleEngine extends LuceneEngine {
        TitleEngine(ShardReaders readers, RestrictedQueries queries) {
            super(readers, queries);
        }

        @Override
        protected Hits answer(ShardReader reader, ScoreDoc[] found) throws IOException {
            ByteArrayOutputStream titles = new ByteArrayOutputStream();
            StoredFields stored = reader.searcher().storedFields();
            for (ScoreDoc hit : found) {
                String title =
                        stored.document(hit.doc, Set.of(IndexFields.TITLE)).get(IndexFields.TITLE);
                titles.writeBytes((title + "\n").getBytes(StandardCharsets.UTF_8));
            }
            return new Hits(new int[0], new float[0], titles.toByteArray());
        }
    }
}
