// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.shai.syse.index.DocumentIndexer;
import dev.shai.syse.index.HistoryAttachment;
import dev.shai.syse.index.IndexBuild;
import dev.shai.syse.index.IndexingFault;
import dev.shai.syse.index.SwappedAttributes;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Builds the Lucene index of a tree of documents. */
@Command(
        name = "indexer",
        mixinStandardHelpOptions = true,
        description =
                "Indexes every file beneath a folder whose name is a conduit number. The index"
                        + " becomes visible whole, at the end. The last line on standard output is"
                        + " JSON with counts and durations.")
public final class Indexer implements Callable<Integer> {
    private static final int MOST_THREADS = 4;

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
        Progress progress = new Progress(System.err, "indexing documents", 0);
        try (IndexBuild build = new IndexBuild(index, shards)) {
            HistoryAttachment histories = new HistoryAttachment();
            DocumentIndexer indexer =
                    new DocumentIndexer(build, attributes(histories), System.err, progress::update);
            Map<DocumentIndexer.Outcome, Long> outcomes = indexer.run(documents, workers);
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
        StringWriter text = new StringWriter();
        try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
            json.writeStartObject();
            for (DocumentIndexer.Outcome outcome : DocumentIndexer.Outcome.values()) {
                String name = outcome.name().toLowerCase(Locale.ROOT);
                json.writeNumberField(name, outcomes.getOrDefault(outcome, 0L));
            }
            json.writeNumberField("shards", shards);
            json.writeNumberField("readSeconds", Math.round(reading * 1000) / 1000.0);
            json.writeNumberField("seconds", Math.round(total * 1000) / 1000.0);
            json.writeEndObject();
        }
        return text.toString();
    }

    public static void main(String[] arguments) {
        System.exit(Program.run(new Indexer(), arguments));
    }
}
