// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.index;

import dev.shai.syse.document.DocumentListing;
import dev.shai.syse.document.DocumentTree;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;
import java.util.function.LongConsumer;

/**
 * Keeps an index equal to a folder of documents. The content of a document never changes: what is
 * new has a number of its own. So documents whose numbers are not in the index are added, and
 * numbers whose documents are gone are deleted. What could not be read is tried again in later
 * steps, as {@link UnreadableDocuments} says. Not safe for concurrent use.
 */
public final class IndexFollower {
    /**
     * What a step has changed.
     *
     * @param outcomes the number of new documents with each outcome
     * @param looking the processor time that listing the folder took, in nanoseconds
     */
    public record Step(Map<DocumentIndexer.Outcome, Long> outcomes, int removed, long looking) {
        /** Whether the step has changed nothing. */
        public boolean isEmpty() {
            return outcomes.isEmpty() && removed == 0;
        }
    }

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** Documents a thread should have, so that it is worth its start. */
    private static final int SHARE = 64;

    private final IndexBuild index;
    private final DocumentListing listing;
    private final int threads;
    private final PrintStream log;

    /** What is indexed, or was looked at and is no document. */
    private ConduitSet known;

    /** What is known, and could not be read. */
    private final UnreadableDocuments unreadable = new UnreadableDocuments();

    /**
     * @param index made by {@link IndexBuild#continued}
     * @param threads how many at most read documents
     * @param log as of {@link DocumentIndexer}
     */
    public IndexFollower(IndexBuild index, Path documents, int threads, PrintStream log)
            throws IOException {
        this.index = index;
        this.listing = new DocumentListing(documents);
        this.threads = threads;
        this.log = log;
        this.known = index.conduits();
    }

    /**
     * Makes the index equal to the folder as it is now, and readers see it when this returns.
     *
     * @throws IOException when the folder cannot be listed or the index cannot be written; the next
     *     step, of another follower, goes on from the last commit
     */
    public Step step() throws IOException, InterruptedException {
        long begun = THREADS.getCurrentThreadCpuTime();
        ConduitSet present = new ConduitSet();
        Map<Integer, Path> added = new HashMap<>();
        unreadable.beginStep();
        listing.list(
                (folder, conduit) -> {
                    present.add(conduit);
                    if (!known.contains(conduit) || unreadable.isDue(conduit, folder)) {
                        added.put(conduit, folder.resolve(Integer.toUnsignedString(conduit)));
                    }
                });
        unreadable.retain(present);
        long looking = THREADS.getCurrentThreadCpuTime() - begun;
        int[] gone = known.without(present);
        Map<DocumentIndexer.Outcome, Long> outcomes = new EnumMap<>(DocumentIndexer.Outcome.class);
        if (!added.isEmpty()) {
            outcomes.putAll(add(added, present));
        }
        index.delete(gone);
        if (!added.isEmpty() || gone.length > 0 || !index.isWhole()) {
            index.commit();
        }
        known = present;
        return new Step(outcomes, gone.length, looking);
    }

    /**
     * Adds documents. What has moved meanwhile, as a document does when its class changes, leaves
     * {@code present}: the next step looks for it.
     */
    private Map<DocumentIndexer.Outcome, Long> add(Map<Integer, Path> added, ConduitSet present)
            throws IOException, InterruptedException {
        LongConsumer unreported = count -> {};
        DocumentIndexer indexer =
                new DocumentIndexer(index, (conduit, own) -> own, log, unreported);
        Map<DocumentIndexer.Outcome, Long> outcomes =
                indexer.run(
                        visitor -> visitAll(added, visitor),
                        Math.min(threads, 1 + added.size() / SHARE));
        indexer.vanished().forEach(present::remove);
        unreadable.note(added, indexer.unreadable());
        return outcomes;
    }

    private static void visitAll(Map<Integer, Path> added, DocumentTree.Visitor visitor)
            throws IOException {
        for (Map.Entry<Integer, Path> document : added.entrySet()) {
            visitor.document(document.getKey(), document.getValue());
        }
    }
}
