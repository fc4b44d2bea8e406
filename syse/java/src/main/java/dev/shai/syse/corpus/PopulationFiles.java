// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Writes the data about users: facts for the monitor, profiles, demo login keys. */
final class PopulationFiles {
    private static final int INTERESTS = 3;

    /**
     * Who works for the search service: employees of the support, and who may read the log of
     * accesses. They can log in, and are no users: they have no home, no friends and no profile.
     */
    private static final List<String> STAFF = List.of("erin", "frank", "auditor");

    private final People people;
    private final FriendGraph graph;
    private final Path directory;

    PopulationFiles(People people, FriendGraph graph, Path directory) {
        this.people = people;
        this.graph = graph;
        this.directory = directory;
    }

    /** facts/population.jsonl, and keys.jsonl and staff.jsonl, which only the owner may read. */
    void writePopulation(DemoKeys keys) throws IOException {
        Path facts = Files.createDirectories(directory.resolve("facts"));
        // Key generation is most of the work, so it uses every core; order is kept.
        List<List<String>> publicKeys =
                Stream.concat(names(), STAFF.stream())
                        .parallel()
                        .map(name -> List.of(name, publicKey(keys, name)))
                        .toList();
        try (JsonLines lines = new JsonLines(facts.resolve("population.jsonl"))) {
            lines.facts("population", "key", publicKeys);
            lines.facts("population", "home", homes());
            for (int user = 0; user < people.count(); user++) {
                List<List<String>> friends = new ArrayList<>();
                friendNames(user).forEach(friend -> friends.add(List.of(friend)));
                lines.facts("friends/" + people.name(user), "friend", friends);
            }
        }
        writeKeys("keys.jsonl", names(), keys);
        writeKeys("staff.jsonl", STAFF.stream(), keys);
    }

    private void writeKeys(String fileName, Stream<String> owners, DemoKeys keys)
            throws IOException {
        Path file = directory.resolve(fileName);
        Files.deleteIfExists(file);
        Files.createFile(
                file,
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        try (JsonLines lines = new JsonLines(file)) {
            for (String name : (Iterable<String>) owners::iterator) {
                String seed = HexFormat.of().formatHex(keys.seed(name));
                lines.line(
                        json -> {
                            json.writeStringField("user", name);
                            json.writeStringField("seed", seed);
                        });
            }
        }
    }

    /** facts/blacklists.jsonl: one line a region, also for regions that block nothing. */
    void writeBlacklists(Map<String, List<String>> conduitsByRegion) throws IOException {
        Path facts = Files.createDirectories(directory.resolve("facts"));
        try (JsonLines lines = new JsonLines(facts.resolve("blacklists.jsonl"))) {
            for (String region : people.regions()) {
                List<List<String>> blocked = new ArrayList<>();
                conduitsByRegion
                        .getOrDefault(region, List.of())
                        .forEach(conduit -> blocked.add(List.of(conduit)));
                lines.facts("blacklist/" + region, "blocked", blocked);
            }
        }
    }

    /** profiles.jsonl; interests are titles of documents. */
    void writeProfiles(List<String> titles, Random random) throws IOException {
        try (JsonLines lines = new JsonLines(directory.resolve("profiles.jsonl"))) {
            for (int user = 0; user < people.count(); user++) {
                String name = people.name(user);
                String[] friends = friendNames(user).toArray(String[]::new);
                String[] interests = new String[titles.isEmpty() ? 0 : INTERESTS];
                for (int i = 0; i < interests.length; i++) {
                    interests[i] = titles.get(random.nextInt(titles.size()));
                }
                lines.line(
                        json -> {
                            json.writeStringField("user", name);
                            json.writeFieldName("friends");
                            json.writeArray(friends, 0, friends.length);
                            json.writeFieldName("interests");
                            json.writeArray(interests, 0, interests.length);
                        });
            }
        }
    }

    private List<String> friendNames(int user) {
        return IntStream.of(graph.friendsOf(user)).mapToObj(people::name).toList();
    }

    private Stream<String> names() {
        return IntStream.range(0, people.count()).mapToObj(people::name);
    }

    private Iterable<List<String>> homes() {
        return () ->
                IntStream.range(0, people.count())
                        .mapToObj(user -> List.of(people.name(user), people.home(user)))
                        .iterator();
    }

    private static String publicKey(DemoKeys keys, String name) {
        return HexFormat.of().formatHex(DemoKeys.publicKey(keys.seed(name)));
    }
}
