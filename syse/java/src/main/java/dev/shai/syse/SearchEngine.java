// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import dev.shai.syse.engine.Complaints;
import dev.shai.syse.engine.Engine;
import dev.shai.syse.engine.Fault;
import dev.shai.syse.engine.Shard;
import dev.shai.syse.engine.ShardServer;
import dev.shai.syse.engine.SlotServer;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Searches one shard of the index: for users' sessions, or for the engine of another shard. */
@Command(
        name = "search",
        mixinStandardHelpOptions = true,
        description =
                "Searches one shard. With --results it serves the front end's slots, and with"
                        + " --forward and --partial asks another shard too; with --answers it is"
                        + " that other shard. Prints \"ready\" when it serves, and ends when its"
                        + " pipes do.")
public final class SearchEngine implements Callable<Integer> {
    @Option(names = "--index", required = true, description = "The folder of the shard.")
    private Path index;

    @Option(
            names = "--queries",
            required = true,
            description = "The pipe of queries; with --results, of slot 0 at PATH/0 and so on.")
    private String queries;

    @Option(
            names = "--results",
            description = "Descriptor channels, of slot 0 at PATH/0 and so on.")
    private String results;

    @Option(
            names = "--checked-results",
            description = "Their twins (default: in /shai/channel-checked for /shai/channel).")
    private String checkedResults;

    @Option(names = "--answers", description = "The pipe for answers to the engine that forwards.")
    private String answers;

    @Option(names = "--forward", description = "The pipe of queries to the other shard.")
    private String forward;

    @Option(names = "--partial", description = "The pipe of answers from the other shard.")
    private String partial;

    @Option(
            names = "--slots",
            defaultValue = "32",
            description = "How many slots there are (default: ${DEFAULT-VALUE}).")
    private int slots;

    @Option(
            names = "--threads",
            description = "How many searches at once with --answers (default: one per core).")
    private Integer threads;

    @Option(
            names = "--warm-up",
            defaultValue = "500",
            description = "How many searches before \"ready\" (default: ${DEFAULT-VALUE}).")
    private int warmUp;

    @Option(
            names = "--refresh",
            defaultValue = "2",
            description = "Seconds between looking for a newer index (default: ${DEFAULT-VALUE}).")
    private int refresh;

    @Option(
            names = "--fault",
            defaultValue = "none",
            description = "Fault injection: ${COMPLETION-CANDIDATES}.")
    private Fault fault;

    @Override
    public Integer call() throws IOException, InterruptedException {
        checkArguments();
        Complaints complaints = new Complaints(System.err);
        try (Shard shard = new Shard(index, fault, complaints)) {
            shard.warmUp(warmUp);
            if (refresh > 0) {
                shard.refreshEvery(refresh);
            }
            System.out.println("ready");
            System.out.flush();
            if (answers != null) {
                int searches =
                        threads == null ? Runtime.getRuntime().availableProcessors() : threads;
                new ShardServer(shard.engine(), complaints).run(queries, answers, searches);
            } else if (forward == null) {
                serve(shard.engine(), complaints);
            } else {
                serveBoth(shard, complaints);
            }
        }
        return 0;
    }

    private void serveBoth(Shard shard, Complaints complaints)
            throws IOException, InterruptedException {
        // In this order: the other engine opens its end of the queries first, too.
        OutputStream asked = new FileOutputStream(forward);
        serve(shard.merging(asked, new FileInputStream(partial)), complaints);
    }

    private void serve(Engine engine, Complaints complaints)
            throws IOException, InterruptedException {
        long count =
                new SlotServer(engine, queries, results, checkedResults, complaints).run(slots);
        System.err.println("all pipes have ended: " + count + " queries answered");
    }

    private void checkArguments() {
        if ((results == null) == (answers == null)) {
            throw new CommandFailure("give either --results or --answers");
        }
        if ((forward == null) != (partial == null) || (forward != null && answers != null)) {
            throw new CommandFailure("--forward and --partial go together, and with --results");
        }
        if (slots < 1 || (threads != null && threads < 1)) {
            throw new CommandFailure("--slots and --threads must be at least 1");
        }
    }

    public static void main(String[] arguments) {
        System.exit(Program.run(new SearchEngine(), arguments));
    }
}
