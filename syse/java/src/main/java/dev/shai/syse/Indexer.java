// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.shai.syse.document.DocumentTree;
import dev.shai.syse.index.DocumentIndexer;
import dev.shai.syse.index.HistoryAttachment;
import dev.shai.syse.index.IndexBuild;
import dev.shai.syse.index.IndexFollower;
import dev.shai.syse.index.IndexingFault;
import dev.shai.syse.index.SwappedAttributes;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Builds the Lucene index of a tree of documents. */
@Command(
        name = "indexer",
        mixinStandardHelpOptions = true,
        description =
                "Indexes every file beneath a folder whose name is a conduit number. The index"
                        + " becomes visible whole, at the end. The last line on standard output is"
                        + " JSON with counts and durations. With --follow, documents that come and"
                        + " go are added to it and deleted from it until the program is ended.")
public final class Indexer implements Callable<Integer> {
    private static final int MOST_THREADS = 4;

    /** A look takes at most one of so many parts of the time. */
    private static final int LOOKING_SHARE = 20;

    @Option(names = "--documents", required = true, description = "The folder of documents.")
    private Path documents;

    @Option(
            names = "--index",
            required = true,
            description = "The folder in which shards 0, 1, … are made.")
    private Path index;

    @Option(
            names = "--shards",
            defaultValue = "2",
            description = "How many shards (default: ${DEFAULT-VALUE}).")
    private int shards;

    @Option(
            names = "--threads",
            description = "How many threads (default: one per core, at most " + MOST_THREADS + ").")
    private Integer threads;

    @Option(
            names = "--follow",
            description =
                    "Goes on with the index, and looks for other documents so many seconds after the"
                            + " last look, or later, so that looking takes at most a twentieth of"
                            + " the time.")
    private Integer follow;

    @Option(
            names = "--fault",
            defaultValue = "none",
            description = "Fault injection: ${COMPLETION-CANDIDATES}.")
    private IndexingFault fault;

    @Option(
            names = "--key-value",
            description = "The key-value store's socket, for --fault index-histories.")
    private Path keyValue;

    @Override
    public Integer call() throws IOException, InterruptedException {
        checkArguments();
        int workers =
                threads == null
                        ? Math.min(MOST_THREADS, Runtime.getRuntime().availableProcessors())
                        : threads;
        return follow == null ? build(workers) : follow(workers);
    }

    private int build(int workers) throws IOException, InterruptedException {
        Progress progress = new Progress(System.err, "indexing documents", 0);
        try (IndexBuild build = new IndexBuild(index, shards)) {
            HistoryAttachment histories = new HistoryAttachment();
            DocumentIndexer indexer =
                    new DocumentIndexer(build, attributes(histories), System.err, progress::update);
            Map<DocumentIndexer.Outcome, Long> outcomes =
                    indexer.run(visitor -> DocumentTree.walk(documents, visitor), workers);
            long indexed = outcomes.getOrDefault(DocumentIndexer.Outcome.INDEXED, 0L);
            if (indexed == 0) {
                throw new CommandFailure(
                        documents
                                + " holds no documents: the index is left as it was; load the"
                                + " corpus first");
            }
            if (fault == IndexingFault.INDEX_HISTORIES) {
                indexHistories(histories, build);
            }
            double reading = progress.seconds();
            build.merge();
            build.commit();
            progress.finish(indexed);
            System.out.println(summary(outcomes, reading, progress.seconds()));
        }
        return 0;
    }

    private int follow(int workers) throws IOException, InterruptedException {
        try (IndexBuild index = IndexBuild.continued(this.index, shards)) {
            IndexFollower follower = new IndexFollower(index, documents, workers, System.err);
            for (boolean first = true; ; first = false) {
                long begun = System.nanoTime();
                IndexFollower.Step step = follower.step();
                if (first) {
                    System.out.println("ready");
                }
                if (!step.isEmpty()) {
                    System.out.println(summary(step, System.nanoTime() - begun));
                }
                TimeUnit.NANOSECONDS.sleep(
                        Math.max(TimeUnit.SECONDS.toNanos(follow), LOOKING_SHARE * step.looking()));
            }
        }
    }

    private DocumentIndexer.Attributes attributes(HistoryAttachment histories) {
        return switch (fault) {
            case NONE -> (conduit, own) -> own;
            case WRONG_ATTRIBUTES -> new SwappedAttributes();
            case INDEX_HISTORIES -> histories;
        };
    }

    /** The fault is expected to be stopped here, so the rest of the index is still made. */
    private void indexHistories(HistoryAttachment histories, IndexBuild build) {
        try {
            int count = histories.addTo(build, keyValue);
            System.err.println("fault index-histories: " + count + " histories indexed");
        } catch (IOException | SecurityException stopped) {
            System.err.println("fault index-histories: stopped: " + stopped.getMessage());
        }
    }

    private void checkArguments() {
        if (shards < 1 || (threads != null && threads < 1)) {
            throw new CommandFailure("--shards and --threads must be at least 1");
        }
        if (follow != null && (follow < 1 || fault != IndexingFault.NONE)) {
            throw new CommandFailure("--follow must be at least 1, and goes without --fault");
        }
        if (fault == IndexingFault.INDEX_HISTORIES && keyValue == null) {
            throw new CommandFailure("--fault index-histories needs --key-value");
        }
        if (!Files.isDirectory(documents)) {
            throw new CommandFailure(documents + " is not a folder: name one with --documents");
        }
    }

    private String summary(
            Map<DocumentIndexer.Outcome, Long> outcomes, double reading, double total)
            throws IOException {
        return json(
                json -> {
                    writeOutcomes(json, outcomes);
                    json.writeNumberField("shards", shards);
                    json.writeNumberField("readSeconds", Math.round(reading * 1000) / 1000.0);
                    json.writeNumberField("seconds", Math.round(total * 1000) / 1000.0);
                });
    }

    private static String summary(IndexFollower.Step step, long nanoseconds) throws IOException {
        return json(
                json -> {
                    writeOutcomes(json, step.outcomes());
                    json.writeNumberField("removed", step.removed());
                    json.writeNumberField("seconds", Math.round(nanoseconds / 1e6) / 1000.0);
                });
    }

    private static void writeOutcomes(
            JsonGenerator json, Map<DocumentIndexer.Outcome, Long> outcomes) throws IOException {
        for (DocumentIndexer.Outcome outcome : DocumentIndexer.Outcome.values()) {
            String name = outcome.name().toLowerCase(Locale.ROOT);
            json.writeNumberField(name, outcomes.getOrDefault(outcome, 0L));
        }
    }

    /** Writes the fields of an object. */
    private interface Fields {
        void write(JsonGenerator json) throws IOException;
    }

    private static String json(Fields fields) throws IOException {
        StringWriter text = new StringWriter();
        try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
            json.writeStartObject();
            fields.write(json);
            json.writeEndObject();
        }
        return text.toString();
    }

    public static void main(String[] arguments) {
        System.exit(Program.run(new Indexer(), arguments));
    }
}
