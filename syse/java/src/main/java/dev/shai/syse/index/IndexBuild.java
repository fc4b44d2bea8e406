// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.index;

import dev.shai.syse.CommandFailure;
import dev.shai.syse.document.DocumentHeader;
import java.io.Closeable;
import java.io.IOException;
import java.io.Reader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.IntStream;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.DocValues;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.SegmentInfos;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.store.LockObtainFailedException;
import org.apache.lucene.store.NativeFSLockFactory;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.IOUtils;

/**
 * Builds the shards of an index beneath a folder, in place of the existing ones or on top of them.
 * Readers see the old index until {@link #commit}; without it {@link #close} leaves the old index
 * as it was. There is one build at a time, of all processes.
 *
 * <p>{@link #add} may be called from several threads. Which shard a document goes to follows from
 * its number, and its place within from its number too, so that the index does not depend on the
 * order of documents.
 */
public final class IndexBuild implements Closeable {
    private static final double BUFFER_MEGABYTES = 64;

    private final List<IndexWriter> writers = new ArrayList<>();
    private final List<Directory> directories = new ArrayList<>();

    private final int shards;
    private boolean isWhole;

    /** Begins building {@code shards} shards in the folder's subfolders "0", "1", … */
    public IndexBuild(Path folder, int shards) throws IOException {
        this(folder, shards, IndexWriterConfig.OpenMode.CREATE);
    }

    /**
     * Goes on with the shards in a folder, or begins if there are none.
     *
     * @throws CommandFailure when there is an index with another number of shards
     */
    public static IndexBuild continued(Path folder, int shards) throws IOException {
        IndexBuild build =
                new IndexBuild(folder, shards, IndexWriterConfig.OpenMode.CREATE_OR_APPEND);
        try {
            build.checkCommits(folder);
            return build;
        } catch (IOException | RuntimeException failure) {
            IOUtils.closeWhileHandlingException(build);
            throw failure;
        }
    }

    private IndexBuild(Path folder, int shards, IndexWriterConfig.OpenMode mode)
            throws IOException {
        this.shards = shards;
        try {
            for (int shard = 0; shard < shards; shard++) {
                // The kernel's lock: a process that is killed leaves none behind.
                Directory directory =
                        FSDirectory.open(
                                folder.resolve(Integer.toString(shard)),
                                NativeFSLockFactory.INSTANCE);
                directories.add(directory);
                writers.add(new IndexWriter(directory, config(mode)));
            }
        } catch (LockObtainFailedException held) {
            IOUtils.closeWhileHandlingException(this);
            throw new CommandFailure(
                    folder
                            + ": another process writes this index: stop the task that follows the"
                            + " documents, or wait for the indexer, and try again",
                    held);
        } catch (IOException | RuntimeException failure) {
            IOUtils.closeWhileHandlingException(this);
            throw failure;
        }
    }

    private static IndexWriterConfig config(IndexWriterConfig.OpenMode mode) {
        return new IndexWriterConfig(IndexFields.analyzer())
                .setOpenMode(mode)
                .setCommitOnClose(false)
                .setRAMBufferSizeMB(BUFFER_MEGABYTES)
                // Equal scores are then ranked by conduit number, in however many shards.
                .setIndexSort(new Sort(new SortField(IndexFields.CONDUIT, SortField.Type.LONG)));
    }

    /** Notes whether the shards' last commits belong together. */
    private void checkCommits(Path folder) throws IOException {
        Set<String> builds = new HashSet<>();
        for (int shard = 0; shard < shards; shard++) {
            if (!DirectoryReader.indexExists(directories.get(shard))) {
                builds.add("");
                continue;
            }
            Map<String, String> data =
                    SegmentInfos.readLatestCommit(directories.get(shard)).getUserData();
            if (!Integer.toString(shards).equals(data.get(IndexFields.COMMIT_SHARDS))) {
                throw new CommandFailure(
                        folder + " has an index of another number of shards: run the indexer");
            }
            builds.add(data.get(IndexFields.COMMIT_BUILD));
        }
        isWhole = builds.size() == 1 && !builds.contains("");
    }

    /**
     * Whether the last commit was one of all shards: a process that was killed may have begun one.
     */
    public boolean isWhole() {
        return isWhole;
    }

    /** The numbers of all documents, committed or not. */
    public ConduitSet conduits() throws IOException {
        ConduitSet found = new ConduitSet();
        for (IndexWriter writer : writers) {
            try (DirectoryReader reader = DirectoryReader.open(writer)) {
                for (LeafReaderContext leaf : reader.leaves()) {
                    Bits live = leaf.reader().getLiveDocs();
                    NumericDocValues values =
                            DocValues.getNumeric(leaf.reader(), IndexFields.CONDUIT);
                    while (values.nextDoc() != NumericDocValues.NO_MORE_DOCS) {
                        if (live == null || live.get(values.docID())) {
                            found.add((int) values.longValue());
                        }
                    }
                }
            }
        }
        return found;
    }

    /**
     * Deletes documents.
     *
     * @param conduits their conduits' numbers; those of others have no effect
     */
    public void delete(int[] conduits) throws IOException {
        if (conduits.length == 0) {
            return;
        }
        long[] numbers =
                IntStream.of(conduits).mapToLong(Integer::toUnsignedLong).sorted().toArray();
        for (IndexWriter writer : writers) {
            writer.deleteDocuments(
                    NumericDocValuesField.newSlowSetQuery(IndexFields.CONDUIT, numbers));
        }
    }

    /**
     * Adds a document.
     *
     * @param conduit its conduit's number, as an unsigned 32-bit integer
     * @param body read to its end, not closed
     */
    public void add(int conduit, DocumentHeader header, Reader body) throws IOException {
        Document document = new Document();
        long number = Integer.toUnsignedLong(conduit);
        document.add(new NumericDocValuesField(IndexFields.CONDUIT, number));
        document.add(new TextField(IndexFields.TITLE, header.title(), Field.Store.YES));
        document.add(new StringField(IndexFields.OWNER, header.owner(), Field.Store.NO));
        document.add(
                new StringField(
                        IndexFields.VISIBILITY, header.visibility().label(), Field.Store.NO));
        document.add(new TextField(IndexFields.BODY, body));
        writers.get((int) (number % writers.size())).addDocument(document);
    }

    /** Merges every shard into one segment, for the fastest and most even searches. */
    public void merge() throws IOException {
        for (IndexWriter writer : writers) {
            writer.forceMerge(1);
        }
    }

    /** Makes the new index visible to readers: all shards, or after a failure none. */
    public void commit() throws IOException {
        isWhole = false;
        Map<String, String> data =
                Map.of(
                        IndexFields.COMMIT_SHARDS,
                        Integer.toString(shards),
                        IndexFields.COMMIT_BUILD,
                        UUID.randomUUID().toString());
        for (IndexWriter writer : writers) {
            writer.setLiveCommitData(data.entrySet()); // also commits a shard that has not changed
        }
        for (IndexWriter writer : writers) {
            writer.prepareCommit(); // only this can fill a disk
        }
        for (IndexWriter writer : writers) {
            writer.commit();
        }
        isWhole = true;
    }

    @Override
    public void close() throws IOException {
        try {
            for (IndexWriter writer : writers) {
                writer.rollback();
            }
        } finally {
            IOUtils.close(directories);
        }
    }
}
