// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.shai.syse.CommandFailure;
import dev.shai.syse.CorpusGenerator;
import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.Visibility;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CorpusBuildTest {
    private static final Corpora.Population FEW =
            new Corpora.Population(20, 6, List.of("us", "de", "fr"), 7);

    @TempDir Path folder;
    private final ByteArrayOutputStream logged = new ByteArrayOutputStream();
    private final PrintStream log = new PrintStream(logged, true, StandardCharsets.UTF_8);

    private Path generate(String name, Corpora.Population population) throws IOException {
        Path out = folder.resolve(name);
        Corpora.generated(400, population, out, log);
        return out;
    }

    private static Map<String, String> contents(Path directory) throws IOException {
        Map<String, String> contents = new TreeMap<>();
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                contents.put(directory.relativize(file).toString(), Files.readString(file));
            }
        }
        return contents;
    }

    @Test
    void theSameSeedGivesTheSameBytesAndAnotherDoesNot() throws IOException {
        Map<String, String> first = contents(generate("first", FEW));
        assertEquals(first, contents(generate("second", FEW)));
        Corpora.Population other = new Corpora.Population(20, 6, List.of("us", "de", "fr"), 8);
        assertFalse(first.equals(contents(generate("third", other))));
    }

    @Test
    void headersAgreeWithPathsAndProportionsHold() throws IOException {
        Map<String, Integer> counts = new TreeMap<>();
        for (Map.Entry<String, String> file : contents(generate("c", FEW)).entrySet()) {
            if (!file.getKey().startsWith("corpus/")) {
                continue;
            }
            Reader reader = new java.io.StringReader(file.getValue());
            DocumentHeader header = DocumentHeader.read(reader);
            String[] path = file.getKey().split("/");
            assertEquals(header.visibility().label(), path[1]);
            if (header.visibility() != Visibility.PUBLIC) {
                assertEquals(header.owner(), path[2]);
            }
            counts.merge(path[1], 1, Integer::sum);
        }
        assertEquals(Map.of("public", 200, "private", 120, "friends", 80), counts);
    }

    @Test
    void aSecondRunDoesNothingAndSaysSo() throws IOException {
        Path out = generate("c", FEW);
        Path document = Files.createFile(out.resolve("mark"));
        generate("c", FEW);
        assertTrue(Files.exists(document), "the directory was left alone");
        assertTrue(logged.toString(StandardCharsets.UTF_8).contains("nothing to do"));
        generate("c", new Corpora.Population(21, 6, List.of("us"), 7));
        assertFalse(Files.exists(document), "other parameters replace it");
    }

    @Test
    void neverReplacesWhatIsNotACorpus() throws IOException {
        Path precious = folder.resolve("home");
        Files.createDirectories(precious);
        Files.writeString(precious.resolve("thesis.txt"), "…");
        assertThrows(CommandFailure.class, () -> generate("home", FEW));
        assertTrue(Files.exists(precious.resolve("thesis.txt")));
    }

    @Test
    void keysAreForTheirOwnerOnly() throws IOException {
        Path corpus = generate("c", FEW);
        for (String keys : List.of("keys.jsonl", "staff.jsonl")) {
            assertEquals(
                    "rw-------",
                    PosixFilePermissions.toString(
                            Files.getPosixFilePermissions(corpus.resolve(keys))));
        }
    }

    @Test
    void theStaffCanLogInAndAreNoUsers() throws IOException {
        Map<String, String> files = contents(generate("c", FEW));
        String facts = files.get("facts/population.jsonl");
        for (String name : List.of("erin", "frank", "auditor")) {
            assertTrue(files.get("staff.jsonl").contains("{\"user\":\"" + name + "\",\"seed\":"));
            assertTrue(facts.lines().findFirst().orElseThrow().contains("[\"" + name + "\",\""));
            assertFalse(facts.contains("[\"" + name + "\",\"us\"]"));
            assertFalse(files.get("keys.jsonl").contains(name));
            assertFalse(files.get("profiles.jsonl").contains(name));
        }
        assertEquals(3, files.get("staff.jsonl").lines().count());
    }

    @Test
    void factsNameEverybodyAndEveryRegion() throws IOException {
        Map<String, String> files = contents(generate("c", FEW));
        List<String> facts = files.get("facts/population.jsonl").lines().toList();
        assertTrue(facts.get(0).startsWith("{\"conduit\":\"population\",\"says\":\"key\""));
        assertTrue(facts.get(1).contains("[\"alice\",\"us\"],[\"bob\",\"de\"],[\"carol\",\"fr\"]"));
        assertEquals(2 + 20, facts.size());
        List<String> regions = files.get("facts/blacklists.jsonl").lines().toList();
        assertEquals(3, regions.size());
        assertTrue(regions.get(1).startsWith("{\"conduit\":\"blacklist/de\",\"says\":\"blocked\""));
        assertEquals(400, files.get("queries.txt").lines().count());
        assertEquals(20, files.get("profiles.jsonl").lines().count());
        assertEquals(20, files.get("keys.jsonl").lines().count());
    }

    @Test
    void theDemoQueryFindsAliceAndBobAndABlockedDocument() throws IOException {
        Map<String, String> files = contents(generate("c", FEW));
        String manifest = files.get("corpus.json").replaceAll("\\s", "");
        String query = manifest.replaceAll(".*\"demoQuery\":\"(.*?)\".*", "$1");
        for (String owned : List.of("private/alice", "private/bob", "friends/alice")) {
            String path = manifest.replaceAll(".*\"/(corpus/" + owned + "/\\d+.txt)\".*", "$1");
            String title = files.get(path).lines().findFirst().orElseThrow();
            assertTrue(title.toLowerCase().contains(query), title);
        }
        assertEquals(2, manifest.split("\"blockedIn\":\"de\"", -1).length, "one is blocked");
    }

    /** Documents 1 … 2500, failing before one of them. */
    private record Failing(int before, int[] given) implements DocumentSource {
        @Override
        public Document next() throws IOException {
            given[0]++;
            if (given[0] == before) {
                throw new IOException("No space left on device");
            }
            return given[0] > 2500 ? null : new Document("title " + given[0], "text\n");
        }

        @Override
        public List<String> titles(int limit) {
            return List.of();
        }

        @Override
        public void close() {}
    }

    private boolean build(Path out, int failingBefore, boolean resume) throws IOException {
        CorpusParameters parameters =
                new CorpusParameters("test", Map.of(), 0, 10, 4, List.of("us"), 3);
        return new CorpusBuild(parameters, log)
                .run(out, random -> new Failing(failingBefore, new int[1]), resume);
    }

    @Test
    void aFailureLeavesNothingBehind() throws IOException {
        Path out = folder.resolve("c");
        assertThrows(IOException.class, () -> build(out, 1500, false));
        try (Stream<Path> left = Files.list(folder)) {
            assertEquals(List.of(), left.toList());
        }
    }

    @Test
    void beingStoppedLeavesNothingBehind() throws Exception {
        Process process =
                new ProcessBuilder(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "-cp",
                                System.getProperty("java.class.path"),
                                CorpusGenerator.class.getName(),
                                "--from=generated",
                                "--documents=100000000",
                                "--out=" + folder.resolve("c"))
                        .redirectErrorStream(true)
                        .start();
        // As few documents as possible: a busy machine takes its time to remove them.
        try {
            while (!writesDocuments()) {
                assertTrue(process.isAlive(), "it ended before it wrote a document");
                Thread.sleep(1);
            }
            process.toHandle().destroy();
            assertEquals(128 + 15, process.waitFor());
        } finally {
            process.destroyForcibly(); // if the test failed, it would fill the disk
        }
        try (Stream<Path> left = Files.list(folder)) {
            assertEquals(List.of(), left.toList());
        }
    }

    private boolean writesDocuments() throws IOException {
        try (Stream<Path> made = Files.walk(folder)) {
            return made.anyMatch(Files::isRegularFile);
        }
    }

    @Test
    void aResumedRunWritesWhatIsMissingAndEndsTheSame() throws IOException {
        Path out = folder.resolve("resumed");
        assertThrows(IOException.class, () -> build(out, 1500, true));
        assertFalse(Files.exists(out));
        assertTrue(build(out, 0, true));
        assertTrue(
                logged.toString(StandardCharsets.UTF_8).contains("resuming after the first 1000"));
        Path whole = folder.resolve("whole");
        build(whole, 0, false);
        assertEquals(contents(whole), contents(out));
    }
}
