// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import dev.shai.syse.CommandFailure;
import dev.shai.syse.Progress;
import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.Visibility;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

/**
 * Writes a whole corpus: documents, facts, profiles, queries and keys. Documents stream; memory
 * holds the users and at most {@link QuerySample#LIMIT} titles.
 */
final class CorpusBuild {
    private static final int CHECKPOINT_EVERY = 1000;

    private final CorpusParameters parameters;
    private final People people;
    private final RandomStreams random;
    private final PrintStream log;

    private final Map<String, Long> counts = new TreeMap<>();
    private final Map<String, List<String>> blocked = new HashMap<>();
    private final Set<Path> folders = new HashSet<>();

    /**
     * @param log gets progress lines
     */
    CorpusBuild(CorpusParameters parameters, PrintStream log) {
        this.parameters = parameters;
        this.people = new People(parameters.users(), parameters.regions());
        this.random = new RandomStreams(parameters.seed());
        this.log = log;
    }

    /** Opens a source, when it is needed. */
    interface Opening {
        DocumentSource open(RandomStreams random) throws IOException;
    }

    /**
     * Makes the corpus unless it is there already.
     *
     * @param destination does not exist, or is empty, or a corpus (which is replaced)
     * @param resume whether an interrupted run's documents are kept for the next run
     * @return whether anything had to be done
     */
    boolean run(Path destination, Opening opening, boolean resume) throws IOException {
        Optional<String> existing = Manifest.readLine(destination);
        if (existing.equals(Optional.of(Manifest.line(parameters)))) {
            log.println(destination + " is already the corpus of these parameters: nothing to do");
            return false;
        }
        if (existing.isEmpty() && Files.exists(destination) && !isEmpty(destination)) {
            throw new CommandFailure(
                    destination
                            + " exists and is not a corpus: name another directory, or remove it");
        }
        try (StagedDirectory staged = new StagedDirectory(destination, resume);
                DocumentSource source = opening.open(random)) {
            Optional<Checkpoint> checkpoint =
                    resume
                            ? Optional.of(new Checkpoint(staged.path(), Manifest.line(parameters)))
                            : Optional.empty();
            write(source, staged, checkpoint);
            staged.commit();
        }
        log.println(destination + ": " + counts);
        return true;
    }

    private void write(
            DocumentSource source, StagedDirectory staged, Optional<Checkpoint> checkpoint)
            throws IOException {
        Path directory = staged.path();
        Assignments assignments = new Assignments(random, people);
        DemoDocuments demo =
                new DemoDocuments(assignments, people, source.titles(DemoDocuments.TITLES_LIMIT));
        QuerySample queries = new QuerySample(random.stream("queries"));
        writeDocuments(source, staged, demo, queries, checkpoint);
        FriendGraph graph =
                new FriendGraph(people.count(), parameters.friends(), random.stream("friends"));
        PopulationFiles population = new PopulationFiles(people, graph, directory);
        log.println("users: writing " + people.count() + " keys, profiles and friend lists");
        population.writePopulation(new DemoKeys(parameters.seed()));
        staged.checkInterrupted();
        population.writeBlacklists(blocked);
        List<String> titles = queries.byPopularity();
        population.writeProfiles(titles, random.stream("interests"));
        Files.write(directory.resolve("queries.txt"), titles, StandardCharsets.UTF_8);
        counts.put("users", (long) people.count());
        counts.put("friendsEach", (long) graph.degree());
        counts.put("queries", (long) titles.size());
        if (checkpoint.isPresent()) {
            checkpoint.get().remove();
        }
        Manifest.write(directory, parameters, counts, Optional.of(demo));
    }

    private void writeDocuments(
            DocumentSource source,
            StagedDirectory staged,
            DemoDocuments demo,
            QuerySample queries,
            Optional<Checkpoint> checkpoint)
            throws IOException {
        int alreadyWritten = checkpoint.isPresent() ? checkpoint.get().read(log) : 0;
        if (alreadyWritten > 0) {
            log.println("documents: resuming after the first " + alreadyWritten);
        }
        Progress progress = new Progress(log, "documents", parameters.documents());
        int number = 0;
        for (Document next = source.next(); next != null; next = source.next()) {
            number++;
            Assignment assignment = demo.of(number);
            queries.add(DocumentHeader.oneLine(next.title()));
            count(number, assignment);
            if (number > alreadyWritten) {
                writeDocument(staged.path(), number, next, assignment);
            }
            if (number % CHECKPOINT_EVERY == 0) {
                staged.checkInterrupted();
                if (checkpoint.isPresent()) {
                    checkpoint.get().write(Math.max(number, alreadyWritten));
                }
            }
            progress.update(number);
        }
        if (number == 0) {
            throw new CommandFailure("the source has no documents");
        }
        progress.finish(number);
    }

    private void count(int number, Assignment assignment) {
        counts.merge("documents", 1L, Long::sum);
        counts.merge(assignment.visibility().label(), 1L, Long::sum);
        if (assignment.blockedIn().isPresent()) {
            String region = assignment.blockedIn().get();
            counts.merge("blocked", 1L, Long::sum);
            blocked.computeIfAbsent(region, key -> new ArrayList<>())
                    .add(assignment.conduit(number));
        }
    }

    private void writeDocument(Path directory, int number, Document document, Assignment assignment)
            throws IOException {
        Path file = directory.resolve(assignment.conduit(number).substring(1));
        if (folders.add(file.getParent())) {
            Files.createDirectories(file.getParent());
        }
        Visibility visibility = assignment.visibility();
        String header =
                new DocumentHeader(document.title(), assignment.owner(), visibility).format();
        Files.writeString(file, header + document.text());
    }

    private static boolean isEmpty(Path directory) throws IOException {
        try (var entries = Files.list(directory)) {
            return entries.findAny().isEmpty();
        }
    }
}
