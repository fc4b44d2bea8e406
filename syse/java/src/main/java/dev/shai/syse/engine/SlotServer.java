// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.io.FileInputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Serves the front end: for each slot one thread that reads queries from the slot's pipe and writes
 * the answers to the slot's descriptor channel, until the pipe ends.
 */
public final class SlotServer {
    /** The longest query line, in bytes, with its line feed: what a pipe takes in one piece. */
    static final int LINE_LIMIT = 4096;

    private static final String CHANNELS = "/shai/channel/";
    private static final String CHECKED_CHANNELS = "/shai/channel-checked/";

    private final Engine engine;
    private final String queries;
    private final String results;
    private final String checkedResults;
    private final Complaints complaints;
    private final AtomicLong answered = new AtomicLong();
    private final AtomicReference<IOException> failure = new AtomicReference<>();

    /**
     * @param queries the pipes' path without "/" and the slot
     * @param results the channels' path, likewise
     * @param checkedResults the path of the channels' twins whose every write asks the monitor;
     *     null for the twin of {@code results} where that lies in /shai/channel, otherwise {@code
     *     results}
     */
    public SlotServer(
            Engine engine,
            String queries,
            String results,
            String checkedResults,
            Complaints complaints) {
        this.engine = engine;
        this.queries = queries;
        this.results = results;
        this.checkedResults = checkedResults == null ? twin(results) : checkedResults;
        this.complaints = complaints;
    }

    private static String twin(String results) {
        return results.startsWith(CHANNELS)
                ? CHECKED_CHANNELS + results.substring(CHANNELS.length())
                : results;
    }

    /**
     * Serves until every slot's pipe has ended.
     *
     * @return how many queries were answered
     * @throws IOException when some pipe or channel could not be used; the other slots were served
     */
    public long run(int slots) throws IOException, InterruptedException {
        Thread[] threads = new Thread[slots];
        for (int slot = 0; slot < slots; slot++) {
            String name = "/" + slot;
            threads[slot] = new Thread(() -> serve(name), "slot" + name);
            threads[slot].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (failure.get() != null) {
            throw failure.get();
        }
        return answered.get();
    }

    private void serve(String slot) {
        try (LineReader lines =
                        new LineReader(new FileInputStream(queries + slot), LINE_LIMIT - 1);
                Channels channels = new Channels(slot)) {
            for (int length = lines.next(); length != LineReader.END; length = lines.next()) {
                answer(lines.line(), length, channels);
                answered.incrementAndGet();
            }
        } catch (IOException broken) {
            complaints.add("slot " + slot + " is no longer served: " + broken.getMessage());
            failure.compareAndSet(null, broken);
        }
    }

    private void answer(byte[] line, int length, Channels channels) throws IOException {
        if (length == LineReader.TOO_LONG) {
            complaints.add("a query of " + LINE_LIMIT + " bytes or more got an empty answer");
            channels.unchecked.write(0, Hits.NONE);
            return;
        }
        SearchRequest request;
        try {
            request = Messages.readRequest(line, length);
        } catch (Messages.MalformedException malformed) {
            complaints.add("a malformed query got an empty answer: " + malformed.getMessage());
            channels.unchecked.write(malformed.query(), Hits.NONE);
            return;
        }
        Hits hits = search(request);
        TransferWriter channel = request.checked() ? channels.checked() : channels.unchecked;
        channel.write(request.query(), hits);
    }

    private Hits search(SearchRequest request) {
        try {
            return engine.search(request);
        } catch (IOException | RuntimeException broken) {
            complaints.add("a query that failed got an empty answer: " + broken);
            return Hits.NONE;
        }
    }

    /** A slot's channel and, from when it is first needed, the checked twin. */
    private final class Channels implements AutoCloseable {
        private final String slot;
        private final TransferWriter unchecked;
        private TransferWriter checked;

        Channels(String slot) throws IOException {
            this.slot = slot;
            this.unchecked = new TransferWriter(Path.of(results + slot));
        }

        TransferWriter checked() throws IOException {
            if (checked == null) {
                checked =
                        checkedResults.equals(results)
                                ? unchecked
                                : new TransferWriter(Path.of(checkedResults + slot));
            }
            return checked;
        }

        @Override
        public void close() throws IOException {
            if (checked != null && checked != unchecked) {
                checked.close();
            }
            unchecked.close();
        }
    }
}
