// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.index;

import dev.shai.syse.document.DocumentHeader;
import java.io.Closeable;
import java.io.IOException;
import java.io.Reader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortField;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.store.SingleInstanceLockFactory;
import org.apache.lucene.util.IOUtils;

/**
 * Builds the shards of an index beneath a folder, in place of the existing ones. Readers see the
 * old index until {@link #commit}; without it {@link #close} leaves the old index as it was.
 *
 * <p>{@link #add} may be called from several threads. Which shard a document goes to follows from
 * its number, and its place within from its number too, so that the index does not depend on the
 * order of documents.
 */
public final class IndexBuild implements Closeable {
    private static final double BUFFER_MEGABYTES = 64;

    private final List<IndexWriter> writers = new ArrayList<>();
    private final List<Directory> directories = new ArrayList<>();

    /** Begins building {@code shards} shards in the folder's subfolders "0", "1", … */
    public IndexBuild(Path folder, int shards) throws IOException {
        String build = UUID.randomUUID().toString();
        try {
            for (int shard = 0; shard < shards; shard++) {
                // No lock file: the pipeline runs one indexer, and a killed one leaves none behind.
                Directory directory =
                        FSDirectory.open(
                                folder.resolve(Integer.toString(shard)),
                                new SingleInstanceLockFactory());
                directories.add(directory);
                IndexWriter writer = new IndexWriter(directory, config());
                writers.add(writer);
                Map<String, String> data =
                        Map.of(
                                IndexFields.COMMIT_SHARDS,
                                Integer.toString(shards),
                                IndexFields.COMMIT_BUILD,
                                build);
                writer.setLiveCommitData(data.entrySet());
            }
        } catch (IOException | RuntimeException failure) {
            IOUtils.closeWhileHandlingException(this);
            throw failure;
        }
    }

    private static IndexWriterConfig config() {
        return new IndexWriterConfig(IndexFields.analyzer())
                .setOpenMode(IndexWriterConfig.OpenMode.CREATE)
                .setCommitOnClose(false)
                .setRAMBufferSizeMB(BUFFER_MEGABYTES)
                // Equal scores are then ranked by conduit number, in however many shards.
                .setIndexSort(new Sort(new SortField(IndexFields.CONDUIT, SortField.Type.LONG)));
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
        for (IndexWriter writer : writers) {
            writer.prepareCommit(); // only this can fill a disk
        }
        for (IndexWriter writer : writers) {
            writer.commit();
        }
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
