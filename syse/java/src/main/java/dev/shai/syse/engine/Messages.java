// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The lines on the engine's pipes. A query: {@code
 * {"query":17,"user":"alice","friends":["bob"],"text":"aback","count":10,"checked":false}}; the
 * hits of one shard: {@code {"query":17,"hits":[[4711,3.25],[12,1.5]]}} with conduit numbers and
 * scores. Unknown fields are skipped.
 */
final class Messages {
    private static final JsonFactory FACTORY = new JsonFactory();
    private static final long LARGEST = 0xFFFF_FFFFL;

    /** Thrown for a line that is not a message. */
    static final class MalformedException extends Exception {
        private static final long serialVersionUID = 1L;
        private final int query;

        private MalformedException(String message, int query) {
            super(message);
            this.query = query;
        }

        /** The query's number if it was readable, otherwise 0. */
        int query() {
            return query;
        }
    }

    /**
     * The hits of one shard.
     *
     * @param query the number of the query
     */
    record Partial(int query, Hits hits) {}

    /** Collects the fields of a message while it is read. */
    private static final class Fields {
        private boolean numbered;
        private int query;
        private String user;
        private List<String> friends = List.of();
        private String text;
        private int count;
        private boolean checked;
        private Hits hits;
    }

    private Messages() {}

    /** Reads a query. */
    static SearchRequest readRequest(byte[] line, int length) throws MalformedException {
        Fields fields = read(line, length);
        if (!fields.numbered || fields.user == null || fields.text == null || fields.count == 0) {
            throw new MalformedException(
                    "a query needs query, user, text and a count of at least 1", fields.query);
        }
        return new SearchRequest(
                fields.query,
                fields.user,
                fields.friends,
                fields.text,
                fields.count,
                fields.checked);
    }

    /** Reads the hits of a shard. */
    static Partial readPartial(byte[] line, int length) throws MalformedException {
        Fields fields = read(line, length);
        if (!fields.numbered || fields.hits == null) {
            throw new MalformedException("a partial answer needs query and hits", fields.query);
        }
        return new Partial(fields.query, fields.hits);
    }

    private static Fields read(byte[] line, int length) throws MalformedException {
        Fields fields = new Fields();
        try (JsonParser json = FACTORY.createParser(line, 0, length)) {
            expect(json, json.nextToken(), JsonToken.START_OBJECT);
            while (json.nextToken() == JsonToken.FIELD_NAME) {
                readField(json, json.currentName(), fields);
            }
            expect(json, json.currentToken(), JsonToken.END_OBJECT);
            expect(json, json.nextToken(), null);
            return fields;
        } catch (IOException malformed) {
            throw new MalformedException(malformed.getMessage(), fields.query);
        }
    }

    private static void readField(JsonParser json, String name, Fields fields) throws IOException {
        JsonToken value = json.nextToken();
        switch (name) {
            case "query" -> {
                fields.query = unsigned(json, value);
                fields.numbered = true;
            }
            case "user" -> fields.user = string(json, value);
            case "text" -> fields.text = string(json, value);
            case "friends" -> fields.friends = strings(json, value);
            case "count" -> {
                long wanted = Integer.toUnsignedLong(unsigned(json, value));
                fields.count = (int) Math.min(wanted, Hits.LIMIT);
            }
            case "checked" -> {
                if (value != JsonToken.VALUE_TRUE) {
                    expect(json, value, JsonToken.VALUE_FALSE);
                }
                fields.checked = value == JsonToken.VALUE_TRUE;
            }
            case "hits" -> fields.hits = hits(json, value);
            default -> json.skipChildren();
        }
    }

    private static void expect(JsonParser json, JsonToken found, JsonToken wanted)
            throws IOException {
        if (found != wanted) {
            throw new IOException(
                    (json.currentName() == null ? "message" : json.currentName())
                            + ": expected "
                            + (wanted == null ? "the end of the line" : wanted)
                            + ", found "
                            + found);
        }
    }

    private static String string(JsonParser json, JsonToken value) throws IOException {
        expect(json, value, JsonToken.VALUE_STRING);
        return json.getText();
    }

    private static List<String> strings(JsonParser json, JsonToken value) throws IOException {
        expect(json, value, JsonToken.START_ARRAY);
        List<String> strings = new ArrayList<>();
        while (json.nextToken() != JsonToken.END_ARRAY) {
            strings.add(string(json, json.currentToken()));
        }
        return strings;
    }

    private static int unsigned(JsonParser json, JsonToken value) throws IOException {
        expect(json, value, JsonToken.VALUE_NUMBER_INT);
        long number = json.getLongValue();
        if (number < 0 || number > LARGEST) {
            throw new IOException(number + " is not an unsigned 32-bit number");
        }
        return (int) number;
    }

    private static Hits hits(JsonParser json, JsonToken value) throws IOException {
        expect(json, value, JsonToken.START_ARRAY);
        int[] conduits = new int[Hits.LIMIT];
        float[] scores = new float[Hits.LIMIT];
        int count = 0;
        while (json.nextToken() != JsonToken.END_ARRAY) {
            if (count == Hits.LIMIT) {
                throw new IOException("more than " + Hits.LIMIT + " hits");
            }
            expect(json, json.currentToken(), JsonToken.START_ARRAY);
            conduits[count] = unsigned(json, json.nextToken());
            json.nextToken();
            scores[count++] = json.getFloatValue();
            expect(json, json.nextToken(), JsonToken.END_ARRAY);
        }
        return new Hits(Arrays.copyOf(conduits, count), Arrays.copyOf(scores, count));
    }

    /** A query as a line, with its line feed. */
    static byte[] line(SearchRequest request) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream(1024);
        try (JsonGenerator json = FACTORY.createGenerator(line)) {
            json.writeStartObject();
            json.writeNumberField("query", Integer.toUnsignedLong(request.query()));
            json.writeStringField("user", request.user());
            json.writeArrayFieldStart("friends");
            for (String friend : request.friends()) {
                json.writeString(friend);
            }
            json.writeEndArray();
            json.writeStringField("text", request.text());
            json.writeNumberField("count", request.count());
            json.writeBooleanField("checked", request.checked());
            json.writeEndObject();
        }
        line.write('\n');
        return line.toByteArray();
    }

    /** The hits of a shard as a line, with its line feed. */
    static byte[] line(Partial partial) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream(256);
        try (JsonGenerator json = FACTORY.createGenerator(line)) {
            json.writeStartObject();
            json.writeNumberField("query", Integer.toUnsignedLong(partial.query()));
            json.writeArrayFieldStart("hits");
            Hits hits = partial.hits();
            for (int i = 0; i < hits.count(); i++) {
                json.writeStartArray();
                json.writeNumber(Integer.toUnsignedLong(hits.conduits()[i]));
                json.writeNumber(hits.scores()[i]);
                json.writeEndArray();
            }
            json.writeEndArray();
            json.writeEndObject();
        }
        line.write('\n');
        return line.toByteArray();
    }
}
