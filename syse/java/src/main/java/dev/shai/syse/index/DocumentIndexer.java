// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.index;

import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.DocumentTree;
import dev.shai.syse.document.Utf8Reader;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongConsumer;

/**
 * Reads documents and adds them to an index build, with several threads. A problem with a document
 * is counted and logged (the first few times), and affects only that document.
 */
public final class DocumentIndexer {
    /** The outcome for a document. */
    public enum Outcome {
        /** In the index. */
        INDEXED,
        /** No text at all. */
        EMPTY,
        /** No complete header, so no search could find it. */
        MALFORMED,
        /** Deleted between listing and reading. */
        VANISHED,
        /** Not a document, or not to be opened. */
        UNREADABLE,
        /** In the index, with ill-formed UTF-8 replaced. */
        REPAIRED,
        /** In the index, without the text beyond {@link #TEXT_LIMIT}. */
        TRUNCATED
    }

    /** The most characters of a document that are indexed. */
    public static final long TEXT_LIMIT = 4L << 20;

    private static final int QUEUE = 256;
    private static final int LOGGED_PER_OUTCOME = 5;
    private static final Item END = new Item(0, Path.of(""));

    private record Item(int conduit, Path file) {}

    private final IndexBuild build;
    private final Attributes attributes;
    private final PrintStream log;
    private final LongConsumer progress;
    private final Map<Outcome, Long> outcomes = new EnumMap<>(Outcome.class);
    private final List<Integer> vanished = new ArrayList<>();
    private final Set<Integer> unreadable = new HashSet<>();
    private final BlockingQueue<Item> queue = new ArrayBlockingQueue<>(QUEUE);
    private final AtomicReference<IOException> failure = new AtomicReference<>();

    /** Decides which header a document is indexed with: its own, unless a fault is injected. */
    public interface Attributes {
        DocumentHeader of(int conduit, DocumentHeader own);
    }

    /** Lists documents. */
    public interface Documents {
        void visit(DocumentTree.Visitor visitor) throws IOException;
    }

    /**
     * @param log gets a line for each of the first few documents that something is wrong with
     * @param progress is told how many documents are done
     */
    public DocumentIndexer(
            IndexBuild build, Attributes attributes, PrintStream log, LongConsumer progress) {
        this.build = build;
        this.attributes = attributes;
        this.log = log;
        this.progress = progress;
    }

    /**
     * Indexes documents. Call it once.
     *
     * @return the number of documents with each outcome
     * @throws IOException when they cannot be listed or the index cannot be written
     */
    public Map<Outcome, Long> run(Documents documents, int threads)
            throws IOException, InterruptedException {
        Thread[] workers = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            workers[i] = new Thread(this::work, "index-" + i);
            workers[i].start();
        }
        try {
            documents.visit(new Enqueue());
        } catch (IOException broken) {
            failure.compareAndSet(null, broken);
        }
        for (int i = 0; i < threads; i++) {
            queue.put(END);
        }
        for (Thread worker : workers) {
            worker.join();
        }
        if (failure.get() != null) {
            throw failure.get();
        }
        return outcomes;
    }

    /** After {@link #run}: the documents that were not where they were listed. */
    public synchronized List<Integer> vanished() {
        return List.copyOf(vanished);
    }

    /** After {@link #run}: the documents that were to be opened, and could not be read. */
    public synchronized Set<Integer> unreadable() {
        return Set.copyOf(unreadable);
    }

    private final class Enqueue implements DocumentTree.Visitor {
        @Override
        public void document(int conduit, Path file) throws IOException {
            if (failure.get() != null) {
                throw failure.get();
            }
            try {
                queue.put(new Item(conduit, file));
            } catch (InterruptedException interrupted) {
                throw new IOException("interrupted while listing documents", interrupted);
            }
        }

        @Override
        public void passedOver(Path path, String reason) {
            record(Outcome.UNREADABLE, path, reason);
        }
    }

    private void work() {
        try {
            for (Item item = queue.take(); item != END; item = queue.take()) {
                if (failure.get() == null) {
                    index(item);
                }
            }
        } catch (InterruptedException interrupted) {
            failure.compareAndSet(null, new IOException("indexing was interrupted", interrupted));
        }
    }

    private void index(Item item) {
        try (Utf8Reader reader = open(item)) {
            if (reader == null) {
                return;
            }
            DocumentHeader header = DocumentHeader.read(reader);
            TrackedReader body = new TrackedReader(reader);
            try {
                build.add(item.conduit(), attributes.of(item.conduit(), header), body);
            } catch (IOException | RuntimeException broken) {
                if (body.failure() == null) {
                    failIndex(broken);
                    return;
                }
                throw body.failure();
            }
            recordIndexed(item.file(), reader);
        } catch (DocumentHeader.MalformedException malformed) {
            boolean empty = malformed.isEmpty();
            record(empty ? Outcome.EMPTY : Outcome.MALFORMED, item.file(), malformed.getMessage());
        } catch (IOException broken) {
            recordUnreadable(item, broken.toString());
        }
    }

    /** The document's text, or null when it cannot be read, which is recorded. */
    private Utf8Reader open(Item item) {
        Path file = item.file();
        try {
            return new Utf8Reader(Files.newInputStream(file), TEXT_LIMIT);
        } catch (NoSuchFileException moved) {
            record(Outcome.VANISHED, file, "vanished");
            synchronized (this) {
                vanished.add(item.conduit());
            }
        } catch (AccessDeniedException denied) {
            recordUnreadable(item, "permission denied");
        } catch (IOException broken) {
            recordUnreadable(item, broken.toString());
        }
        return null;
    }

    private synchronized void recordUnreadable(Item item, String reason) {
        unreadable.add(item.conduit());
        record(Outcome.UNREADABLE, item.file(), reason);
    }

    /** The index itself is broken (a full disk), so indexing cannot continue. */
    private void failIndex(Exception broken) {
        failure.compareAndSet(
                null, new IOException("cannot write the index: " + broken.getMessage(), broken));
    }

    private void recordIndexed(Path file, Utf8Reader reader) {
        record(Outcome.INDEXED, null, null);
        if (reader.replaced() > 0) {
            record(
                    Outcome.REPAIRED,
                    file,
                    reader.replaced() + " ill-formed UTF-8 sequences replaced");
        }
        if (reader.truncated()) {
            record(Outcome.TRUNCATED, file, "indexed up to character " + TEXT_LIMIT);
        }
    }

    private synchronized void record(Outcome outcome, Path path, String reason) {
        long count = outcomes.merge(outcome, 1L, Long::sum);
        if (outcome == Outcome.INDEXED) {
            progress.accept(count);
        } else if (count <= LOGGED_PER_OUTCOME) {
            log.println(path + ": " + reason);
        } else if (count == LOGGED_PER_OUTCOME + 1) {
            log.println("more such (" + outcome + ") are counted, not listed");
        }
    }
}
