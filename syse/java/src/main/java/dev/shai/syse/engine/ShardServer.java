// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Serves another engine: reads queries from one pipe and writes this shard's hits to another, in
 * the order in which searches end.
 */
public final class ShardServer {
    private static final int LINE_LIMIT = 2 * SlotServer.LINE_LIMIT;
    private static final int MOST_PENDING = 1024;
    private static final long LAST_SEARCHES_SECONDS = 10;

    private final Engine engine;
    private final Complaints complaints;
    private final Semaphore pending = new Semaphore(MOST_PENDING);

    /** Answers with {@code engine}. */
    public ShardServer(Engine engine, Complaints complaints) {
        this.engine = engine;
        this.complaints = complaints;
    }

    /**
     * Serves until the pipe of queries ends.
     *
     * @param queries the path of the pipe to read
     * @param answers the path of the pipe to write
     * @param threads how many searches run at once
     */
    public void run(String queries, String answers, int threads)
            throws IOException, InterruptedException {
        ExecutorService searches = Executors.newFixedThreadPool(threads);
        try (LineReader lines = new LineReader(new FileInputStream(queries), LINE_LIMIT);
                OutputStream output = new FileOutputStream(answers)) {
            for (int length = lines.next(); length != LineReader.END; length = lines.next()) {
                submit(searches, lines.line(), length, output);
            }
            searches.shutdown();
            searches.awaitTermination(LAST_SEARCHES_SECONDS, TimeUnit.SECONDS);
        } finally {
            searches.shutdownNow();
        }
    }

    private void submit(ExecutorService searches, byte[] line, int length, OutputStream output)
            throws InterruptedException {
        if (length == LineReader.TOO_LONG) {
            complaints.add("a query of more than " + LINE_LIMIT + " bytes was dropped");
            return;
        }
        try {
            SearchRequest request = Messages.readRequest(line, length);
            pending.acquire();
            searches.execute(() -> answer(request, output));
        } catch (Messages.MalformedException malformed) {
            complaints.add("a malformed query was dropped: " + malformed.getMessage());
        }
    }

    private void answer(SearchRequest request, OutputStream output) {
        try {
            Hits hits = search(request);
            byte[] line = Messages.line(new Messages.Partial(request.query(), hits));
            synchronized (output) {
                output.write(line);
            }
        } catch (IOException broken) {
            complaints.add("an answer could not be written: " + broken.getMessage());
        } finally {
            pending.release();
        }
    }

    private Hits search(SearchRequest request) {
        try {
            return engine.search(request);
        } catch (IOException | RuntimeException broken) {
            complaints.add("a query that failed got an empty answer: " + broken);
            return Hits.NONE;
        }
    }
}
