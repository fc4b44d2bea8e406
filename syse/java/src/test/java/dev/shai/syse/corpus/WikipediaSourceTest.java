// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.shai.syse.CommandFailure;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPOutputStream;
import org.apache.commons.compress.compressors.bzip2.BZip2CompressorOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WikipediaSourceTest {
    private static final String DUMP =
            """
            <mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="en">
              <siteinfo><sitename>Wikipedia</sitename></siteinfo>
              <page><title>Zürich</title><ns>0</ns><id>1</id>
                <revision><id>9</id><text xml:space="preserve">A city &lt;ref&gt; in
            Switzerland.</text></revision></page>
              <page><title>Zurich</title><ns>0</ns><id>2</id><redirect title="Zürich" />
                <revision><text>#REDIRECT [[Zürich]]</text></revision></page>
              <page><title>Talk:Zürich</title><ns>1</ns><id>3</id>
                <revision><text>Talk.</text></revision></page>
              <page><title>Bern</title><ns>0</ns><id>4</id>
                <revision><text>Another city.</text></revision></page>
            </mediawiki>
            """;

    @TempDir Path folder;

    private Path write(String name, String xml) throws IOException {
        Path dump = folder.resolve(name);
        try (OutputStream raw = Files.newOutputStream(dump);
                OutputStream output =
                        name.endsWith("bz2")
                                ? new BZip2CompressorOutputStream(raw)
                                : name.endsWith("gz") ? new GZIPOutputStream(raw) : raw) {
            output.write(xml.getBytes(StandardCharsets.UTF_8));
        }
        return dump;
    }

    private static List<Document> read(Path dump, int limit) throws IOException {
        List<Document> documents = new ArrayList<>();
        try (WikipediaSource source = new WikipediaSource(dump, limit)) {
            for (Document next = source.next(); next != null; next = source.next()) {
                documents.add(next);
            }
        }
        return documents;
    }

    @ParameterizedTest
    @ValueSource(strings = {"dump.xml", "dump.xml.bz2", "dump.xml.gz"})
    void givesArticlesOnly(String name) throws IOException {
        assertEquals(
                List.of(
                        new Document("Zürich", "A city <ref> in\nSwitzerland."),
                        new Document("Bern", "Another city.")),
                read(write(name, DUMP), 0));
    }

    @Test
    void givesNoMoreThanWanted() throws IOException {
        assertEquals(1, read(write("dump.xml", DUMP), 1).size());
    }

    @Test
    void aCutDumpNamesTheLine() throws IOException {
        Path dump = write("dump.xml", DUMP.substring(0, DUMP.indexOf("Another")));
        CommandFailure failure = assertThrows(CommandFailure.class, () -> read(dump, 0));
        assertTrue(failure.getMessage().startsWith(dump + ":11: "), failure.getMessage());
    }

    @Test
    void entitiesAreNeitherFetchedNorExpanded() throws IOException {
        Path secret = Files.writeString(folder.resolve("secret"), "secret");
        String xml =
                "<!DOCTYPE m [<!ENTITY x SYSTEM \""
                        + secret.toUri()
                        + "\">]><m><page><title>T</title><ns>0</ns><text>&x;</text></page></m>";
        Path dump = write("dump.xml", xml);
        assertThrows(CommandFailure.class, () -> read(dump, 0));
    }
}
