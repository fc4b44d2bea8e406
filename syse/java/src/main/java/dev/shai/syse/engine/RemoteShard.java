// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The shard behind two pipes: queries go out on one, what it found comes back on the other, in any
 * order. If the shard has ended or does not answer, its hits are missing and a message is logged,
 * but the query does not fail.
 */
final class RemoteShard implements Closeable {
    private static final int LINE_LIMIT = 16384;
    private static final long PATIENCE_MILLISECONDS = 5000;
    private static final long PATIENCE_WITH_SILENT_MILLISECONDS = 50;

    private final OutputStream forward;
    private final InputStream partial;
    private final Complaints complaints;
    private final AtomicInteger numbers = new AtomicInteger();
    private final Map<Integer, CompletableFuture<Hits>> waiting = new ConcurrentHashMap<>();
    private volatile boolean gone;
    private volatile boolean silent;

    /**
     * Begins to listen to the shard.
     *
     * @param forward queries are written here
     * @param partial answers are read here
     */
    RemoteShard(OutputStream forward, InputStream partial, Complaints complaints) {
        this.forward = forward;
        this.partial = partial;
        this.complaints = complaints;
        Thread listener = new Thread(this::listen, "partial");
        listener.setDaemon(true);
        listener.start();
    }

    /** Sends a query. Its {@link Answer} must be awaited exactly once. */
    Answer ask(SearchRequest request) {
        int number = numbers.incrementAndGet();
        CompletableFuture<Hits> hits = new CompletableFuture<>();
        if (gone) {
            hits.complete(Hits.NONE);
            return new Answer(number, hits);
        }
        waiting.put(number, hits);
        try {
            byte[] line = Messages.line(request.numbered(number));
            synchronized (forward) {
                forward.write(line);
            }
        } catch (IOException broken) {
            lose("cannot write to the other shard: " + broken.getMessage());
        }
        if (gone) {
            hits.complete(Hits.NONE); // lost between the question and its entry in the table
        }
        return new Answer(number, hits);
    }

    /** The hits that the shard will find. */
    final class Answer {
        private final int number;
        private final CompletableFuture<Hits> hits;

        private Answer(int number, CompletableFuture<Hits> hits) {
            this.number = number;
            this.hits = hits;
        }

        /** Waits for the answer; nothing when there is none in time. */
        Hits await() throws IOException {
            try {
                return hits.get(
                        silent ? PATIENCE_WITH_SILENT_MILLISECONDS : PATIENCE_MILLISECONDS,
                        TimeUnit.MILLISECONDS);
            } catch (TimeoutException late) {
                silent = true;
                complaints.add("the other shard is silent: answering without it");
                return Hits.NONE;
            } catch (InterruptedException | ExecutionException interrupted) {
                throw new IOException("waiting for the other shard was interrupted", interrupted);
            } finally {
                waiting.remove(number);
            }
        }
    }

    private void listen() {
        try (LineReader lines = new LineReader(partial, LINE_LIMIT)) {
            for (int length = lines.next(); length != LineReader.END; length = lines.next()) {
                if (length != LineReader.TOO_LONG) {
                    receive(lines.line(), length);
                }
            }
            lose("the other shard has ended");
        } catch (IOException broken) {
            lose("cannot read from the other shard: " + broken.getMessage());
        }
    }

    private void receive(byte[] line, int length) {
        try {
            Messages.Partial answer = Messages.readPartial(line, length);
            silent = false;
            CompletableFuture<Hits> hits = waiting.get(answer.query());
            if (hits != null) {
                hits.complete(answer.hits());
            }
        } catch (Messages.MalformedException malformed) {
            complaints.add("the other shard sent a malformed line: " + malformed.getMessage());
        }
    }

    private void lose(String reason) {
        if (!gone) {
            gone = true;
            complaints.add(reason + "; answering without it from now on");
        }
        waiting.values().forEach(hits -> hits.complete(Hits.NONE));
    }

    /** Closes the pipe of queries, which ends the other shard. */
    @Override
    public void close() throws IOException {
        gone = true;
        forward.close();
    }
}
