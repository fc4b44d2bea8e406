// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import dev.shai.syse.CommandFailure;
import dev.shai.syse.index.IndexFields;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexNotFoundException;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.store.NoLockFactory;

/**
 * One commit of one shard, open for searching. The shards beside it are open too, but only their
 * term dictionaries are ever read, so that scores are those of the whole index.
 *
 * <p>Reference-counted by {@link ShardReaders}; holders never close it themselves.
 */
final class ShardReader {
    private final DirectoryReader own;
    private final Map<Path, DirectoryReader> others;
    private final StatisticsSearcher searcher;
    private final int[][] conduitsByLeaf;

    /** What was read of the segments of {@code own}; a later commit has most of them, too. */
    private final Map<IndexReader.CacheKey, int[]> conduitsBySegment = new HashMap<>();

    private ShardReader(
            DirectoryReader own,
            Map<Path, DirectoryReader> others,
            Map<IndexReader.CacheKey, int[]> known)
            throws IOException {
        this.own = own;
        this.others = others;
        List<IndexReader> everything = new ArrayList<>(others.values());
        everything.add(own);
        this.searcher = new StatisticsSearcher(own, everything);
        this.conduitsByLeaf = new int[own.leaves().size()][];
        for (LeafReaderContext leaf : own.leaves()) {
            IndexReader.CacheKey segment = leaf.reader().getCoreCacheHelper().getKey();
            int[] conduits = known.get(segment);
            conduitsByLeaf[leaf.ord] = conduits == null ? readConduits(leaf) : conduits;
            conduitsBySegment.put(segment, conduitsByLeaf[leaf.ord]);
        }
        own.getReaderCacheHelper().addClosedListener(key -> release(others));
    }

    /**
     * Opens a shard.
     *
     * @param shard the folder of the shard; the other shards are its siblings "0", "1", …
     * @throws CommandFailure when there is no index, or one whose shards do not belong together
     */
    static ShardReader open(Path shard) throws IOException {
        if (!Files.isDirectory(shard)) {
            throw noIndex(shard);
        }
        DirectoryReader own;
        try {
            own = openDirectory(shard);
        } catch (IndexNotFoundException none) {
            throw noIndex(shard);
        }
        return open(shard, own, Map.of(), Map.of())
                .orElseThrow(
                        () ->
                                new CommandFailure(
                                        shard
                                                + " and the shards beside it were not built together:"
                                                + " run the indexer"));
    }

    /** The current commit if it is a new one and complete. */
    Optional<ShardReader> reopen(Path shard) throws IOException {
        DirectoryReader changed = DirectoryReader.openIfChanged(own);
        return changed == null ? Optional.empty() : open(shard, changed, others, conduitsBySegment);
    }

    /** Takes over {@code own}; empty while the other shards are of another build. */
    private static Optional<ShardReader> open(
            Path shard,
            DirectoryReader own,
            Map<Path, DirectoryReader> before,
            Map<IndexReader.CacheKey, int[]> known)
            throws IOException {
        Map<Path, DirectoryReader> others = new HashMap<>();
        boolean complete = false;
        try {
            complete = openOthers(shard, own, before, others);
            return complete ? Optional.of(new ShardReader(own, others, known)) : Optional.empty();
        } finally {
            if (!complete) {
                release(others);
                own.close();
            }
        }
    }

    private static boolean openOthers(
            Path shard,
            DirectoryReader own,
            Map<Path, DirectoryReader> before,
            Map<Path, DirectoryReader> others)
            throws IOException {
        int shards = Integer.parseInt(commitData(own, IndexFields.COMMIT_SHARDS));
        for (int number = 0; number < shards; number++) {
            Path sibling = shard.resolveSibling(Integer.toString(number));
            // A shard that is stored elsewhere: scores then use only the shards that are here.
            if (sibling.equals(shard) || !Files.isDirectory(sibling)) {
                continue;
            }
            DirectoryReader other = newest(sibling, before.get(sibling));
            others.put(sibling, other);
            String build = commitData(own, IndexFields.COMMIT_BUILD);
            if (!build.equals(commitData(other, IndexFields.COMMIT_BUILD))) {
                return false;
            }
        }
        return true;
    }

    /** Opens the newest commit in a folder. It shares what it can with an earlier one, or is it. */
    private static DirectoryReader newest(Path folder, DirectoryReader before) throws IOException {
        if (before == null) {
            return openDirectory(folder);
        }
        DirectoryReader changed = DirectoryReader.openIfChanged(before);
        if (changed != null) {
            return changed;
        }
        before.incRef();
        return before;
    }

    private static void release(Map<Path, DirectoryReader> readers) throws IOException {
        for (DirectoryReader reader : readers.values()) {
            reader.decRef();
        }
    }

    private static String commitData(DirectoryReader reader, String key) throws IOException {
        String value = reader.getIndexCommit().getUserData().get(key);
        if (value == null) {
            throw new CommandFailure(
                    "the index was not made by this indexer (no \"" + key + "\"): run the indexer");
        }
        return value;
    }

    private static DirectoryReader openDirectory(Path folder) throws IOException {
        Directory directory = FSDirectory.open(folder, NoLockFactory.INSTANCE);
        if (directory instanceof MMapDirectory mapped) {
            mapped.setPreload(MMapDirectory.ALL_FILES);
        }
        return DirectoryReader.open(directory);
    }

    private static CommandFailure noIndex(Path shard) {
        return new CommandFailure(shard + " holds no index: run the indexer first");
    }

    private static int[] readConduits(LeafReaderContext leaf) throws IOException {
        int[] conduits = new int[leaf.reader().maxDoc()];
        NumericDocValues values = leaf.reader().getNumericDocValues(IndexFields.CONDUIT);
        for (int document = 0; document < conduits.length; document++) {
            if (values == null || !values.advanceExact(document)) {
                throw new CommandFailure("a document without conduit number: run the indexer");
            }
            conduits[document] = (int) values.longValue();
        }
        return conduits;
    }

    StatisticsSearcher searcher() {
        return searcher;
    }

    /** The reader with which this one is closed. */
    DirectoryReader reader() {
        return own;
    }

    /** Lucene's hits as conduit numbers. */
    Hits hits(ScoreDoc[] found) {
        int[] conduits = new int[found.length];
        float[] scores = new float[found.length];
        for (int i = 0; i < found.length; i++) {
            int leaf = ReaderUtil.subIndex(found[i].doc, own.leaves());
            conduits[i] = conduitsByLeaf[leaf][found[i].doc - own.leaves().get(leaf).docBase];
            scores[i] = found[i].score;
        }
        return new Hits(conduits, scores);
    }
}
