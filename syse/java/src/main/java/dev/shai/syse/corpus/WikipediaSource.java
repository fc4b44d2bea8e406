// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import dev.shai.syse.CommandFailure;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.zip.GZIPInputStream;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLStreamConstants;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamReader;
import org.apache.commons.compress.compressors.bzip2.BZip2CompressorInputStream;

/**
 * The articles of a MediaWiki XML dump ("pages-articles"), plain or compressed with bzip2 or gzip,
 * one page in memory at a time. Redirects and pages outside the main namespace are left out; wiki
 * markup is kept as it is.
 */
final class WikipediaSource implements DocumentSource {
    private static final int BUFFER_BYTES = 1 << 16;

    private final Path dump;
    private final InputStream input;
    private final XMLStreamReader xml;
    private final int limit;
    private int given;

    /**
     * @param limit how many articles to give at most; 0 for all
     */
    WikipediaSource(Path dump, int limit) throws IOException {
        this.dump = dump;
        this.limit = limit;
        this.input = decompress(new BufferedInputStream(Files.newInputStream(dump), BUFFER_BYTES));
        try {
            this.xml = factory().createXMLStreamReader(input);
        } catch (XMLStreamException failure) {
            input.close();
            throw damaged(failure);
        }
    }

    private static InputStream decompress(InputStream raw) throws IOException {
        raw.mark(2);
        int first = raw.read();
        int second = raw.read();
        raw.reset();
        if (first == 'B' && second == 'Z') {
            return new BZip2CompressorInputStream(raw, true); // dumps are many streams in a row
        }
        return first == 0x1F && second == 0x8B ? new GZIPInputStream(raw, BUFFER_BYTES) : raw;
    }

    private static XMLInputFactory factory() {
        XMLInputFactory factory = XMLInputFactory.newDefaultFactory();
        factory.setProperty(XMLInputFactory.SUPPORT_DTD, false);
        factory.setProperty(XMLInputFactory.IS_SUPPORTING_EXTERNAL_ENTITIES, false);
        // The JDK counts every &lt; of the whole dump against these; without a DTD no entity can
        // grow, so the limits would protect from nothing.
        String limits = "http://www.oracle.com/xml/jaxp/properties/";
        for (String name :
                List.of(
                        "totalEntitySizeLimit",
                        "maxGeneralEntitySizeLimit",
                        "entityExpansionLimit")) {
            factory.setProperty(limits + name, "0");
        }
        return factory;
    }

    @Override
    public Document next() throws IOException {
        if (limit > 0 && given == limit) {
            return null;
        }
        try {
            while (xml.hasNext()) {
                if (xml.next() == XMLStreamConstants.START_ELEMENT
                        && xml.getLocalName().equals("page")) {
                    Document article = readPage();
                    if (article != null) {
                        given++;
                        return article;
                    }
                }
            }
            return null;
        } catch (XMLStreamException failure) {
            throw damaged(failure);
        }
    }

    /** Reads to the end of a page; null when it is not an article. */
    private Document readPage() throws XMLStreamException {
        String title = null;
        String text = null;
        boolean article = true;
        while (true) {
            int event = xml.next();
            if (event == XMLStreamConstants.END_ELEMENT && xml.getLocalName().equals("page")) {
                return article && title != null && text != null ? new Document(title, text) : null;
            }
            if (event == XMLStreamConstants.START_ELEMENT) {
                switch (xml.getLocalName()) {
                    case "title" -> title = xml.getElementText();
                    case "ns" -> article &= xml.getElementText().strip().equals("0");
                    case "redirect" -> article = false;
                    case "text" -> text = xml.getElementText();
                    default -> {}
                }
            }
        }
    }

    private CommandFailure damaged(XMLStreamException failure) {
        int line = failure.getLocation() == null ? 0 : failure.getLocation().getLineNumber();
        return new CommandFailure(
                dump
                        + ":"
                        + line
                        + ": not well-formed XML ("
                        + failure.getMessage().replaceAll("\\s+", " ")
                        + "); download the dump again and run the same command to go on",
                failure);
    }

    @Override
    public List<String> titles(int limit) {
        return List.of();
    }

    @Override
    public void close() throws IOException {
        input.close();
    }
}
