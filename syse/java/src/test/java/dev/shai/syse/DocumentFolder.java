// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.Visibility;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** A folder of documents named by conduit number, as the monitor's view is. */
public final class DocumentFolder {
    private final Path path;

    public DocumentFolder(Path path) {
        this.path = path;
        try {
            Files.createDirectories(path);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    public Path path() {
        return path;
    }

    public void add(int conduit, String title, String owner, Visibility visibility, String text) {
        write(
                Integer.toString(conduit),
                new DocumentHeader(title, owner, visibility).format() + text);
    }

    /** Writes a file byte by byte: characters above U+00FF are not for here. */
    public void write(String name, String content) {
        try {
            Files.write(path.resolve(name), content.getBytes(StandardCharsets.ISO_8859_1));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
