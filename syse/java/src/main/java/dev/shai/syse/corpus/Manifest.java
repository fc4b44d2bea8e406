// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.util.DefaultIndenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** {@code corpus.json}: the parameters of a corpus, the resulting numbers, and queries to try. */
final class Manifest {
    static final String FILE = "corpus.json";

    /** Changed whenever the same parameters start to give other bytes. */
    private static final int FORMAT = 1;

    private static final JsonFactory FACTORY = new JsonFactory();

    private Manifest() {}

    /**
     * @param counts what was written, by name
     * @param demo what to try, or empty
     */
    static void write(
            Path directory,
            CorpusParameters parameters,
            Map<String, Long> counts,
            Optional<DemoDocuments> demo)
            throws IOException {
        StringWriter text = new StringWriter();
        try (JsonGenerator json = FACTORY.createGenerator(text)) {
            DefaultPrettyPrinter printer = new DefaultPrettyPrinter();
            json.setPrettyPrinter(printer.withObjectIndenter(new DefaultIndenter("  ", "\n")));
            json.writeStartObject();
            json.writeFieldName("parameters");
            writeParameters(json, parameters);
            json.writeObjectFieldStart("counts");
            for (Map.Entry<String, Long> count : counts.entrySet()) {
                json.writeNumberField(count.getKey(), count.getValue());
            }
            json.writeEndObject();
            if (demo.isPresent() && demo.get().query().isPresent()) {
                writeDemo(json, demo.get());
            }
            json.writeEndObject();
        }
        Files.writeString(directory.resolve(FILE), text + "\n");
    }

    private static void writeDemo(JsonGenerator json, DemoDocuments demo) throws IOException {
        json.writeStringField("demoQuery", demo.query().orElseThrow());
        json.writeArrayFieldStart("demoDocuments");
        for (Map.Entry<Integer, Assignment> document : demo.documents().entrySet()) {
            Assignment assignment = document.getValue();
            json.writeStartObject();
            json.writeStringField("conduit", assignment.conduit(document.getKey()));
            json.writeStringField("owner", assignment.owner());
            json.writeStringField("visibility", assignment.visibility().label());
            if (assignment.blockedIn().isPresent()) {
                json.writeStringField("blockedIn", assignment.blockedIn().get());
            }
            json.writeEndObject();
        }
        json.writeEndArray();
    }

    /** The parameters as one line of JSON: equal for equal corpora. */
    static String line(CorpusParameters parameters) throws IOException {
        StringWriter text = new StringWriter();
        try (JsonGenerator json = FACTORY.createGenerator(text)) {
            writeParameters(json, parameters);
        }
        return text.toString();
    }

    /** The {@link #line} of the corpus in a directory, if there is a corpus. */
    static Optional<String> readLine(Path directory) throws IOException {
        StringWriter text = new StringWriter();
        try (JsonParser json = FACTORY.createParser(Files.readString(directory.resolve(FILE)))) {
            while (json.nextToken() != null) {
                if ("parameters".equals(json.currentName())
                        && json.currentToken() == JsonToken.START_OBJECT) {
                    try (JsonGenerator copy = FACTORY.createGenerator(text)) {
                        copy.copyCurrentStructure(json);
                    }
                    return Optional.of(text.toString());
                }
            }
            return Optional.empty();
        } catch (NoSuchFileException none) {
            return Optional.empty();
        }
    }

    private static void writeParameters(JsonGenerator json, CorpusParameters parameters)
            throws IOException {
        json.writeStartObject();
        json.writeNumberField("format", FORMAT);
        json.writeStringField("source", parameters.source());
        json.writeNumberField("documents", parameters.documents());
        json.writeNumberField("users", parameters.users());
        json.writeNumberField("friends", parameters.friends());
        json.writeNumberField("seed", parameters.seed());
        String[] regions = parameters.regions().toArray(String[]::new);
        json.writeFieldName("regions");
        json.writeArray(regions, 0, regions.length);
        json.writeObjectFieldStart("inputs");
        for (Map.Entry<String, String> input : new TreeMap<>(parameters.inputs()).entrySet()) {
            json.writeStringField(input.getKey(), input.getValue());
        }
        json.writeEndObject();
        json.writeEndObject();
    }
}
