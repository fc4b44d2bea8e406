// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import dev.shai.syse.engine.Complaints;
import dev.shai.syse.engine.RandomEngine;
import dev.shai.syse.engine.SlotServer;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Replaces the search engine where its cost would hide the cost of everything else. */
@Command(
        name = "fast",
        mixinStandardHelpOptions = true,
        description =
                "Answers queries with random documents that the user may read. Prints \"ready\""
                        + " when it serves, and ends when its pipes do.")
public final class FastEngine implements Callable<Integer> {
    @Option(names = "--documents", required = true, description = "The folder of documents.")
    private Path documents;

    @Option(names = "--queries", required = true, description = "Pipes of queries, at PATH/SLOT.")
    private String queries;

    @Option(names = "--results", required = true, description = "Channels, at PATH/SLOT.")
    private String results;

    @Option(
            names = "--checked-results",
            description = "Their twins (default: in /shai/channel-checked for /shai/channel).")
    private String checkedResults;

    @Option(
            names = "--slots",
            defaultValue = "32",
            description = "How many slots there are (default: ${DEFAULT-VALUE}).")
    private int slots;

    @Option(
            names = "--busy-microseconds",
            defaultValue = "0",
            description = "How long each query keeps a core busy (default: ${DEFAULT-VALUE}).")
    private long busyMicroseconds;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (slots < 1 || busyMicroseconds < 0) {
            throw new CommandFailure("--slots must be at least 1, --busy-microseconds at least 0");
        }
        Complaints complaints = new Complaints(System.err);
        long busyNanos = TimeUnit.MICROSECONDS.toNanos(busyMicroseconds);
        RandomEngine engine = new RandomEngine(documents, busyNanos, complaints);
        if (engine.size() == 0) {
            throw new CommandFailure(documents + " holds no documents: load the corpus first");
        }
        System.out.println("ready");
        System.out.flush();
        long count =
                new SlotServer(engine, queries, results, checkedResults, complaints).run(slots);
        System.err.println("all pipes have ended: " + count + " queries answered");
        return 0;
    }

    public static void main(String[] arguments) {
        System.exit(Program.run(new FastEngine(), arguments));
    }
}
