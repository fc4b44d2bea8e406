// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.document;

import java.io.IOException;
import java.io.Reader;
import java.util.Optional;

/**
 * The attributes of a document, before its text: {@code title}, {@code owner} and {@code
 * visibility}, one field a line, ended by an empty line.
 *
 * <p>The <em>search</em> uses the header. Enforcement uses the policy on the document's path; the
 * two agree only as long as nothing is broken.
 *
 * @param title one line, not empty
 * @param owner a user's name, or {@link #NO_OWNER} for a public document
 * @param visibility whom the owner shows it to
 */
public record DocumentHeader(String title, String owner, Visibility visibility) {
    /** The owner of public documents. */
    public static final String NO_OWNER = "-";

    /** Titles are cut to this many characters when written; queries are titles. */
    public static final int TITLE_LIMIT = 200;

    private static final int LINE_LIMIT = 4096;
    private static final int LINES_LIMIT = 16;

    /** Thrown for a document that does not begin with a complete header. */
    public static final class MalformedException extends IOException {
        private static final long serialVersionUID = 1L;

        private final boolean empty;

        MalformedException(String message) {
            this(message, false);
        }

        private MalformedException(String message, boolean empty) {
            super(message);
            this.empty = empty;
        }

        /** Whether the document was empty. */
        public boolean isEmpty() {
            return empty;
        }
    }

    public DocumentHeader {
        if ((visibility == Visibility.PUBLIC) != owner.equals(NO_OWNER)) {
            throw new IllegalArgumentException(
                    "a public document has no owner and any other has one; got owner \""
                            + owner
                            + "\", visibility \""
                            + visibility.label()
                            + "\"");
        }
    }

    /** The header as written in a file, with the empty line that ends it. */
    public String format() {
        return "title: "
                + oneLine(title)
                + "\nowner: "
                + owner
                + "\nvisibility: "
                + visibility.label()
                + "\n\n";
    }

    /**
     * Reads a header and leaves the reader at the first character of the text. Unknown fields are
     * skipped.
     *
     * @throws MalformedException for anything but a complete header
     */
    public static DocumentHeader read(Reader reader) throws IOException {
        String title = null;
        String owner = null;
        Optional<Visibility> visibility = Optional.empty();
        for (int number = 1; number <= LINES_LIMIT; number++) {
            String line = readLine(reader, number);
            if (line.isEmpty()) {
                return complete(title, owner, visibility);
            }
            int colon = line.indexOf(": ");
            if (colon < 0) {
                throw new MalformedException(
                        "header line " + number + " is not of the form \"field: value\"");
            }
            String value = line.substring(colon + 2).strip();
            switch (line.substring(0, colon)) {
                case "title" -> title = value;
                case "owner" -> owner = value;
                case "visibility" -> visibility = Visibility.ofLabel(value);
                default -> {}
            }
        }
        throw new MalformedException("no empty line ends the header within " + LINES_LIMIT);
    }

    private static DocumentHeader complete(
            String title, String owner, Optional<Visibility> visibility) throws MalformedException {
        if (title == null || owner == null || owner.isEmpty() || visibility.isEmpty()) {
            throw new MalformedException(
                    "the header needs a title, an owner and a visibility of public, private or"
                            + " friends");
        }
        try {
            return new DocumentHeader(title, owner, visibility.get());
        } catch (IllegalArgumentException contradiction) {
            throw new MalformedException(contradiction.getMessage());
        }
    }

    private static String readLine(Reader reader, int number) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int character = reader.read(); character != '\n'; character = reader.read()) {
            if (character < 0) {
                boolean empty = number == 1 && line.isEmpty();
                throw new MalformedException(empty ? "empty" : "ends within the header", empty);
            }
            if (line.length() == LINE_LIMIT) {
                throw new MalformedException(
                        "header line " + number + " is longer than " + LINE_LIMIT + " characters");
            }
            line.append((char) character);
        }
        return line.toString();
    }

    /** A title without line breaks and controls, cut to {@link #TITLE_LIMIT}. */
    public static String oneLine(String title) {
        StringBuilder clean = new StringBuilder(Math.min(title.length(), TITLE_LIMIT));
        title.codePoints()
                .map(point -> Character.isISOControl(point) ? ' ' : point)
                .limit(TITLE_LIMIT)
                .forEach(clean::appendCodePoint);
        String stripped = clean.toString().strip();
        return stripped.isEmpty() ? "untitled" : stripped;
    }
}
