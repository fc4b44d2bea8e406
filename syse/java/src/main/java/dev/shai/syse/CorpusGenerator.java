// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import dev.shai.syse.corpus.Corpora;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Makes Sys-E's corpus: documents, users, policies' facts, queries and login keys. */
@Command(
        name = "corpus",
        mixinStandardHelpOptions = true,
        description =
                "Makes a corpus from a dictionary or from invented words. The same arguments give"
                        + " the same bytes; a corpus that is already there is left alone.")
public final class CorpusGenerator implements Callable<Integer> {
    enum Source {
        GCIDE,
        GENERATED
    }

    private static final int GENERATED_DOCUMENTS = 20_000;

    @Option(
            names = "--from",
            defaultValue = "gcide",
            description = "${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
    private Source source;

    @Option(
            names = "--documents",
            description = "How many (default: all headwords, or " + GENERATED_DOCUMENTS + ").")
    private Integer documents;

    @Option(
            names = "--dictionary",
            defaultValue = "/usr/share/dictd/gcide",
            description =
                    "The dictionary's path without .dict.dz and .index (default: ${DEFAULT-VALUE}).")
    private Path dictionary;

    @Option(names = "--out", required = true, description = "The directory to make.")
    private Path out;

    @Mixin private PopulationOptions population;

    @Override
    public Integer call() throws IOException {
        if (documents != null && documents < 1) {
            throw new CommandFailure("--documents " + documents + ": there must be at least 1");
        }
        switch (source) {
            case GCIDE ->
                    Corpora.fromDictionary(
                            dictionary,
                            documents == null ? 0 : documents,
                            population.population(),
                            out,
                            System.err);
            case GENERATED ->
                    Corpora.generated(
                            documents == null ? GENERATED_DOCUMENTS : documents,
                            population.population(),
                            out,
                            System.err);
        }
        return 0;
    }

    public static void main(String[] arguments) {
        System.exit(Program.run(new CorpusGenerator(), arguments));
    }
}
