// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.document;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.Reader;
import java.io.StringReader;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.api.Test;

class DocumentHeaderTest {
    @Property(tries = 300)
    void anyTitleComesBackAsOneLine(@ForAll String title, @ForAll Visibility visibility)
            throws IOException {
        String owner = visibility == Visibility.PUBLIC ? DocumentHeader.NO_OWNER : "alice";
        DocumentHeader header =
                new DocumentHeader(DocumentHeader.oneLine(title), owner, visibility);
        Reader reader = new StringReader(header.format() + "text");
        DocumentHeader read = DocumentHeader.read(reader);
        assertEquals(header.owner(), read.owner());
        assertEquals(header.visibility(), read.visibility());
        assertEquals(header.title().strip(), read.title());
        assertEquals('t', reader.read(), "the text begins after the empty line");
    }

    @Test
    void refusesWhatIsNotAHeader() {
        List<String> malformed =
                List.of(
                        "",
                        "\n",
                        "title: t",
                        "title: t\nowner: a\n\n",
                        "title: t\nowner: a\nvisibility: secret\n\n",
                        "title: t\nowner: a\nvisibility: public\n\n",
                        "title: t\nowner: -\nvisibility: private\n\n",
                        "just text\n\n",
                        "title: " + "x".repeat(5000) + "\n\n",
                        "x: y\n".repeat(20) + "\n");
        for (String text : malformed) {
            DocumentHeader.MalformedException failure =
                    assertThrows(
                            DocumentHeader.MalformedException.class,
                            () -> DocumentHeader.read(new StringReader(text)),
                            text);
            assertEquals(text.isEmpty(), failure.isEmpty());
        }
    }

    @Test
    void skipsUnknownFields() throws IOException {
        String text = "language: en\ntitle: t\nowner: bob\nvisibility: friends\n\n";
        DocumentHeader header = DocumentHeader.read(new StringReader(text));
        assertEquals(new DocumentHeader("t", "bob", Visibility.FRIENDS), header);
        assertTrue(Visibility.ofLabel("Friends").isEmpty(), "labels are exact");
    }
}
