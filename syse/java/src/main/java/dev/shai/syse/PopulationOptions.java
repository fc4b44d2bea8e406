// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import dev.shai.syse.corpus.Corpora;
import dev.shai.syse.corpus.People;
import java.util.List;
import picocli.CommandLine.Option;

/** The options for the users of a corpus. */
final class PopulationOptions {
    @Option(
            names = "--users",
            defaultValue = "2000",
            description = "How many users (default: ${DEFAULT-VALUE}).")
    private int users;

    @Option(
            names = "--friends",
            defaultValue = "100",
            description = "How many friends each user has (default: ${DEFAULT-VALUE}).")
    private int friends;

    @Option(
            names = "--regions",
            split = ",",
            defaultValue = "us,de,fr",
            description = "Where users live and documents are blocked (default: ${DEFAULT-VALUE}).")
    private List<String> regions;

    @Option(
            names = "--seed",
            defaultValue = "1",
            description = "What every random choice follows from (default: ${DEFAULT-VALUE}).")
    private long seed;

    /**
     * @throws CommandFailure for a population that cannot be
     */
    Corpora.Population population() {
        if (users < People.MINIMUM) {
            throw new CommandFailure(
                    "--users " + users + ": there must be at least " + People.MINIMUM);
        }
        if (friends < 1) {
            throw new CommandFailure("--friends " + friends + ": everybody needs at least 1");
        }
        return new Corpora.Population(users, friends, regions, seed);
    }
}
