// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;

/** Remembers in a staged directory how many documents it holds, for a run that resumes it. */
final class Checkpoint {
    private static final String FILE = "checkpoint.txt";

    private final Path directory;
    private final String parameters;

    /**
     * @param parameters one line; only a run with the same resumes
     */
    Checkpoint(Path directory, String parameters) {
        this.directory = directory;
        this.parameters = parameters;
    }

    /** Returns the number of documents. Discards those of a run with other parameters. */
    int read(PrintStream log) throws IOException {
        try {
            List<String> lines = Files.readAllLines(directory.resolve(FILE));
            if (lines.size() == 2 && lines.get(0).equals(parameters)) {
                return Integer.parseInt(lines.get(1));
            }
            log.println("an unfinished corpus of other parameters is discarded");
        } catch (NoSuchFileException none) {
            // Begins from the first document.
        }
        StagedDirectory.deleteTree(directory);
        Files.createDirectories(directory);
        return 0;
    }

    /** Records that the first {@code documents} are complete. */
    void write(int documents) throws IOException {
        Path fresh = directory.resolve(FILE + ".new");
        Files.writeString(fresh, parameters + "\n" + documents + "\n");
        Files.move(fresh, directory.resolve(FILE), StandardCopyOption.ATOMIC_MOVE);
    }

    /** The directory is complete. */
    void remove() throws IOException {
        Files.deleteIfExists(directory.resolve(FILE));
    }
}
