// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.shai.syse.keyvalue.FakeStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProfileLoaderTest {
    @TempDir Path folder;

    private int load(List<String> profiles) throws Exception {
        Path file = Files.write(folder.resolve("profiles.jsonl"), profiles);
        String socket = folder.resolve("s").toString();
        return Program.run(new ProfileLoader(), "--profiles", file.toString(), "--socket", socket);
    }

    @Test
    void setsOneTupleAUser() throws Exception {
        List<String> profiles = new ArrayList<>();
        List<String> commands = new ArrayList<>();
        for (int user = 0; user < 1200; user++) {
            profiles.add("{\"user\":\"u" + user + "\",\"friends\":[]}");
            commands.add("SET profile:u" + user + " " + profiles.get(user));
        }
        try (FakeStore store = new FakeStore(folder.resolve("s"))) {
            assertEquals(0, load(profiles));
            assertEquals(commands, store.commands());
        }
    }

    @Test
    void failsWhenTheStoreRefusesOrIsNotThereOrALineIsDamaged() throws Exception {
        List<String> one = List.of("{\"user\":\"u\"}");
        assertEquals(1, load(one), "no store");
        try (FakeStore store = new FakeStore(folder.resolve("s"))) {
            store.answer("-NOPERM no\r\n");
            assertEquals(1, load(one));
        }
        Files.delete(folder.resolve("s"));
        try (FakeStore store = new FakeStore(folder.resolve("s"))) {
            assertEquals(1, load(List.of("{\"name\":\"u\"}")));
            assertEquals(List.of(), store.commands());
        }
    }
}
