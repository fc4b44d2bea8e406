// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import dev.shai.syse.corpus.Corpora;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Makes Sys-E's corpus from a Wikipedia dump. */
@Command(
        name = "wikipedia",
        mixinStandardHelpOptions = true,
        description =
                "Makes a corpus from a MediaWiki XML dump (plain, .bz2 or .gz). After an"
                        + " interruption the same command goes on.")
public final class WikipediaLoader implements Callable<Integer> {
    @Option(
            names = "--dump",
            required = true,
            description = "As in enwiki-…-pages-articles.xml.bz2.")
    private Path dump;

    @Option(
            names = "--documents",
            defaultValue = "0",
            description = "How many articles at most (default: all).")
    private int documents;

    @Option(names = "--out", required = true, description = "The directory to make.")
    private Path out;

    @Mixin private PopulationOptions population;

    @Override
    public Integer call() throws IOException {
        if (!Files.isReadable(dump)) {
            throw new CommandFailure(
                    dump + " cannot be read: download a dump from https://dumps.wikimedia.org/");
        }
        Corpora.fromWikipedia(dump, documents, population.population(), out, System.err);
        return 0;
    }

    public static void main(String[] arguments) {
        System.exit(Program.run(new WikipediaLoader(), arguments));
    }
}
