// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.shai.syse.document.Visibility;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The engines over named pipes, which carry queries and, record by record, answers. */
@Timeout(value = 3, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class SearchEngineTest {
    private static final int SLOTS = 3;

    @TempDir Path folder;
    private final ExecutorService programs = Executors.newCachedThreadPool();
    private DocumentFolder documents;

    @BeforeEach
    void makePipesAndIndex() throws Exception {
        List<String> pipes = new ArrayList<>(List.of("forward", "partial"));
        for (String kind : List.of("queries", "results", "checked")) {
            Files.createDirectories(folder.resolve(kind));
            for (int slot = 0; slot < SLOTS; slot++) {
                pipes.add(kind + "/" + slot);
            }
        }
        List<String> command = new ArrayList<>(List.of("mkfifo"));
        pipes.forEach(pipe -> command.add(folder.resolve(pipe).toString()));
        assertEquals(0, new ProcessBuilder(command).inheritIO().start().waitFor());
        documents = new DocumentFolder(folder.resolve("view"));
        documents.add(1, "cross mine", "alice", Visibility.PRIVATE, "");
        documents.add(2, "cross mine too", "alice", Visibility.PRIVATE, "");
        documents.add(3, "cross", "-", Visibility.PUBLIC, "");
        documents.add(4, "a cross for friends", "bob", Visibility.FRIENDS, "");
        String[] arguments = {"--documents", path("view"), "--index", path("index")};
        assertEquals(0, Program.run(new Indexer(), arguments));
    }

    @AfterEach
    void stop() {
        programs.shutdownNow();
    }

    private String path(String name) {
        return folder.resolve(name).toString();
    }

    private static List<String> and(List<String> first, String... more) {
        List<String> all = new ArrayList<>(first);
        all.addAll(Arrays.asList(more));
        return all;
    }

    private List<String> front(int slots) {
        List<String> arguments =
                List.of(
                        "--index", path("index/0"),
                        "--queries", path("queries"),
                        "--results", path("results"),
                        "--checked-results", path("checked"),
                        "--slots", Integer.toString(slots));
        return and(arguments, "--forward", path("forward"), "--partial", path("partial"));
    }

    private List<String> back() {
        return List.of(
                "--index", path("index/1"),
                "--queries", path("forward"),
                "--answers", path("partial"));
    }

    private Future<Integer> start(Callable<Integer> command, List<String> arguments) {
        return programs.submit(() -> Program.run(command, arguments.toArray(String[]::new)));
    }

    /** The front end's side of one slot. */
    private final class Session implements AutoCloseable {
        private final OutputStream queries;
        private final InputStream results;

        Session(int slot) throws IOException {
            queries = Files.newOutputStream(folder.resolve("queries/" + slot));
            results = Files.newInputStream(folder.resolve("results/" + slot));
        }

        void send(String line) throws IOException {
            queries.write((line + "\n").getBytes(StandardCharsets.UTF_8));
            queries.flush();
        }

        void ask(int query, String user, String friends, boolean checked) throws IOException {
            send(
                    "{\"query\":"
                            + query
                            + ",\"user\":\""
                            + user
                            + "\",\"friends\":["
                            + friends
                            + "],\"text\":\"Cross\",\"count\":10,\"checked\":"
                            + checked
                            + "}");
        }

        int[] answer() throws IOException {
            return record(results);
        }

        @Override
        public void close() throws IOException {
            queries.close();
            results.close();
        }
    }

    private static int[] record(InputStream channel) throws IOException {
        byte[] bytes = new byte[4096];
        int length = channel.read(bytes);
        ByteBuffer buffer = ByteBuffer.wrap(bytes, 0, length).order(ByteOrder.LITTLE_ENDIAN);
        int[] numbers = new int[length / 4];
        buffer.asIntBuffer().get(numbers);
        return numbers;
    }

    private static int[] sortedConduits(int[] record) {
        int[] conduits = Arrays.copyOfRange(record, 2, record.length);
        Arrays.sort(conduits);
        return conduits;
    }

    @Test
    void twoEnginesAnswerEachUserOnTheirSlotAndEndWithTheirPipes() throws Exception {
        Future<Integer> back = start(new SearchEngine(), back());
        Future<Integer> front = start(new SearchEngine(), front(SLOTS));
        try (Session alice = new Session(0);
                Session bob = new Session(1);
                Session idle = new Session(2)) {
            alice.ask(17, "alice", "\"bob\"", false);
            bob.ask(-1 >>> 1, "bob", "", false);
            int[] alices = alice.answer();
            assertEquals(17, alices[0]);
            assertEquals(0, alices[1]);
            assertArrayEquals(new int[] {1, 2, 3, 4}, sortedConduits(alices));
            int[] bobs = bob.answer();
            assertEquals(Integer.MAX_VALUE, bobs[0]);
            assertArrayEquals(new int[] {3, 4}, sortedConduits(bobs));
            idle.send("one that nobody can read");
            assertArrayEquals(new int[] {0, 0}, idle.answer());
            idle.send("{\"query\":5,\"text\":7}");
            assertArrayEquals(new int[] {5, 0}, idle.answer());
            idle.send("x".repeat(5000));
            assertArrayEquals(new int[] {0, 0}, idle.answer());
            idle.ask(6, "carol", "", false);
            assertArrayEquals(new int[] {3}, sortedConduits(idle.answer()));
        }
        assertEquals(0, front.get());
        assertEquals(0, back.get());
    }

    @Test
    void checkedQueriesAreAnsweredOnTheTwinChannel() throws Exception {
        start(new SearchEngine(), back());
        Future<Integer> front = start(new SearchEngine(), front(1));
        try (Session session = new Session(0)) {
            session.ask(1, "carol", "", true);
            try (InputStream checked = Files.newInputStream(folder.resolve("checked/0"))) {
                assertArrayEquals(new int[] {1, 0, 3}, record(checked));
            }
            session.ask(2, "carol", "", false);
            assertArrayEquals(new int[] {2, 0, 3}, session.answer());
        }
        assertEquals(0, front.get());
    }

    @Test
    void aFaultyEngineWritesOtherPeoplesDocumentsOrText() throws Exception {
        List<String> alone =
                List.of(
                        "--index", path("index/0"),
                        "--queries", path("queries"),
                        "--results", path("results"),
                        "--slots", "1");
        Future<Integer> leaking =
                start(new SearchEngine(), and(alone, "--fault", "ignore-attributes"));
        try (Session session = new Session(0)) {
            session.ask(1, "carol", "", false);
            assertArrayEquals(new int[] {2, 4}, sortedConduits(session.answer()));
        }
        assertEquals(0, leaking.get());
        Future<Integer> writing =
                start(new SearchEngine(), and(alone, "--fault", "text-instead-of-ids"));
        try (Session session = new Session(0)) {
            session.ask(1, "carol", "", false);
            byte[] bytes = new byte[4096];
            int length = session.results.read(bytes);
            String text = new String(bytes, 8, length - 8, StandardCharsets.UTF_8);
            assertTrue(text.contains("cross mine too"), text);
        }
        assertEquals(0, writing.get());
    }

    @Test
    void aProcessToldToStopStopsWithoutATrace() throws Exception {
        List<String> command =
                new ArrayList<>(
                        List.of(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "-cp",
                                System.getProperty("java.class.path"),
                                SearchEngine.class.getName()));
        Process process =
                new ProcessBuilder(and(command, front(SLOTS).toArray(String[]::new)))
                        .redirectErrorStream(true)
                        .start();
        InputStream output = process.getInputStream();
        assertEquals("ready\n", new String(output.readNBytes(6), StandardCharsets.UTF_8));
        process.toHandle().destroy(); // Process.destroy would close the output, too
        assertEquals(128 + 15, process.waitFor());
        assertEquals("", new String(output.readAllBytes(), StandardCharsets.UTF_8));
    }

    @Test
    void wrongArgumentsAreNamed() {
        assertEquals(1, Program.run(new SearchEngine(), "--index", "i", "--queries", "q"));
        assertEquals(2, Program.run(new SearchEngine(), "--index", "i"));
        String[] unknownFault = {
            "--index", "i", "--queries", "q", "--results", "r", "--fault", "typo"
        };
        assertEquals(2, Program.run(new SearchEngine(), unknownFault));
    }
}
