// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.MinimalPrettyPrinter;
import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Writes a file of JSON objects, one a line. */
final class JsonLines implements Closeable {
    private static final JsonFactory FACTORY = new JsonFactory();

    /** Writes the fields of one object. */
    interface Fields {
        void write(JsonGenerator json) throws IOException;
    }

    private final OutputStream output;
    private final JsonGenerator json;

    JsonLines(Path file) throws IOException {
        output = new BufferedOutputStream(Files.newOutputStream(file), 1 << 16);
        json = FACTORY.createGenerator(output);
        json.setPrettyPrinter(new MinimalPrettyPrinter("\n"));
    }

    /** Adds a line. */
    void line(Fields fields) throws IOException {
        json.writeStartObject();
        fields.write(json);
        json.writeEndObject();
    }

    /** Adds a line of facts: {@code conduit says says(t) for each tuple t}. */
    void facts(String conduit, String says, Iterable<List<String>> tuples) throws IOException {
        line(
                fields -> {
                    fields.writeStringField("conduit", conduit);
                    fields.writeStringField("says", says);
                    fields.writeArrayFieldStart("tuples");
                    for (List<String> tuple : tuples) {
                        fields.writeArray(tuple.toArray(String[]::new), 0, tuple.size());
                    }
                    fields.writeEndArray();
                });
    }

    @Override
    public void close() throws IOException {
        json.writeRaw('\n');
        json.close();
    }
}
