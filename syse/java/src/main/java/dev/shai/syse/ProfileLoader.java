// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.shai.syse.keyvalue.KeyValueConnection;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Loads a corpus's profiles into the key-value store. */
@Command(
        name = "profiles",
        mixinStandardHelpOptions = true,
        description =
                "Sets the tuple profile:USER to USER's line of profiles.jsonl, for everybody.")
public final class ProfileLoader implements Callable<Integer> {
    private static final int BATCH = 500;
    private static final JsonFactory FACTORY = new JsonFactory();

    @Option(names = "--profiles", required = true, description = "The corpus's profiles.jsonl.")
    private Path profiles;

    @Option(names = "--socket", required = true, description = "The key-value store's socket.")
    private Path socket;

    @Override
    public Integer call() throws IOException {
        Progress progress = new Progress(System.err, "profiles", 0);
        int loaded = 0;
        try (BufferedReader lines = Files.newBufferedReader(profiles);
                KeyValueConnection store = new KeyValueConnection(socket)) {
            int unanswered = 0;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                store.send("SET", "profile:" + user(line, loaded + 1), line);
                loaded++;
                if (++unanswered == BATCH) {
                    receive(store, unanswered);
                    unanswered = 0;
                    progress.update(loaded);
                }
            }
            receive(store, unanswered);
        }
        progress.finish(loaded);
        return 0;
    }

    private static void receive(KeyValueConnection store, int answers) throws IOException {
        for (int i = 0; i < answers; i++) {
            store.receive();
        }
    }

    private String user(String line, int number) {
        try (JsonParser json = FACTORY.createParser(line)) {
            while (json.nextToken() != null) {
                if ("user".equals(json.currentName())
                        && json.currentToken() == JsonToken.VALUE_STRING) {
                    return json.getText();
                }
            }
        } catch (IOException malformed) {
            throw new CommandFailure(
                    profiles + ":" + number + ": not JSON; make the corpus again", malformed);
        }
        throw new CommandFailure(
                profiles + ":" + number + ": no field \"user\"; make the corpus again");
    }

    public static void main(String[] arguments) {
        System.exit(Program.run(new ProfileLoader(), arguments));
    }
}
