// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import dev.shai.syse.index.IndexFields;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.IOUtils;

/**
 * One shard of the index, ready to be searched, always in its newest commit. Close it when no
 * search runs any more.
 */
public final class Shard implements Closeable {
    private static final int WARM_UP_TERMS = 1000;
    private static final int WARM_UP_FRIENDS = 100;
    private static final int WARM_UP_RESULTS = 10;

    private final ShardReaders readers;
    private final Engine engine;
    private final Complaints complaints;
    private Thread refresher;
    private RemoteShard other;

    /**
     * Opens a shard.
     *
     * @param folder made by {@code IndexBuild}; the other shards are looked for beside it
     * @throws dev.shai.syse.CommandFailure when there is no index to search
     */
    public Shard(Path folder, Fault fault, Complaints complaints) throws IOException {
        this.readers = new ShardReaders(folder);
        this.engine = ShardEngines.make(readers, fault);
        this.complaints = complaints;
    }

    /** Answers from this shard alone. */
    public Engine engine() {
        return engine;
    }

    /**
     * Answers from this shard and the one behind two pipes. Takes over both streams; {@link #close}
     * closes {@code forward}, which tells the other shard that no more queries come. Call it once.
     */
    public Engine merging(OutputStream forward, InputStream partial) {
        other = new RemoteShard(forward, partial, complaints);
        return new MergingEngine(engine, other);
    }

    /** Looks for a newer commit every so many seconds, on a thread of its own. Call it once. */
    public void refreshEvery(int seconds) {
        refresher = new Thread(() -> refresh(TimeUnit.SECONDS.toMillis(seconds)), "refresh");
        refresher.setDaemon(true);
        refresher.start();
    }

    private void refresh(long milliseconds) {
        try {
            while (true) {
                Thread.sleep(milliseconds);
                refreshNow();
            }
        } catch (InterruptedException closed) {
            // The shard is being closed.
        }
    }

    /** Looks for a newer commit. */
    void refreshNow() {
        try {
            readers.maybeRefresh();
        } catch (IOException | RuntimeException broken) {
            complaints.add("the index cannot be refreshed, the last one stays: " + broken);
        }
    }

    /**
     * Runs searches for words of titles, so that the first user finds everything compiled and in
     * memory.
     */
    public void warmUp(int searches) throws IOException {
        List<String> words = terms(IndexFields.TITLE, WARM_UP_TERMS);
        List<String> friends = terms(IndexFields.OWNER, WARM_UP_FRIENDS);
        for (int i = 0; i < searches && !words.isEmpty(); i++) {
            String word = words.get(i % words.size());
            engine.search(new SearchRequest(i, "", friends, word, WARM_UP_RESULTS, false));
        }
    }

    /** Terms of a field, spread over the alphabet. */
    private List<String> terms(String field, int limit) throws IOException {
        ShardReader reader = readers.acquire();
        try {
            List<String> found = new ArrayList<>();
            Terms terms = MultiTerms.getTerms(reader.reader(), field);
            if (terms == null) {
                return found;
            }
            long size = terms.size() > 0 ? terms.size() : terms.getDocCount();
            long step = Math.max(1, size / limit);
            TermsEnum all = terms.iterator();
            int position = 0;
            for (BytesRef term = all.next(); term != null; term = all.next()) {
                if (position++ % step == 0 && found.size() < limit) {
                    found.add(term.utf8ToString());
                }
            }
            return found;
        } finally {
            readers.release(reader);
        }
    }

    @Override
    public void close() throws IOException {
        if (refresher != null) {
            refresher.interrupt();
            try {
                refresher.join();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }
        IOUtils.close(other, readers);
    }
}
