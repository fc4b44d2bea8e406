// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.document;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.OptionalInt;

/**
 * The documents beneath a folder such as the monitor's view, where a document's file name is its
 * conduit's number in decimal and folders have no meaning.
 */
public final class DocumentTree {
    /** Receives the documents that are found. */
    public interface Visitor {
        /**
         * A file whose name is a conduit number.
         *
         * @param conduit from 1; above 2^31 - 1 it reads as negative, as an unsigned number does
         */
        void document(int conduit, Path file) throws IOException;

        /** A file or folder that cannot be read, or whose name is not a number. */
        void passedOver(Path path, String reason);
    }

    private static final long LARGEST = 0xFFFF_FFFFL;

    private DocumentTree() {}

    /**
     * Visits every document. Files that are deleted in the meantime are skipped.
     *
     * @throws IOException when the folder itself cannot be read, or from the visitor
     */
    public static void walk(Path folder, Visitor visitor) throws IOException {
        Files.walkFileTree(
                folder,
                new SimpleFileVisitor<>() {
                    @Override
                    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
                            throws IOException {
                        OptionalInt conduit = conduit(file.getFileName().toString());
                        if (conduit.isPresent()) {
                            visitor.document(conduit.getAsInt(), file);
                        } else {
                            visitor.passedOver(file, "its name is not a conduit number");
                        }
                        return FileVisitResult.CONTINUE;
                    }

                    @Override
                    public FileVisitResult visitFileFailed(Path file, IOException failure)
                            throws IOException {
                        return passOver(file, failure);
                    }

                    @Override
                    public FileVisitResult postVisitDirectory(Path visited, IOException failure)
                            throws IOException {
                        return failure == null
                                ? FileVisitResult.CONTINUE
                                : passOver(visited, failure);
                    }

                    private FileVisitResult passOver(Path path, IOException failure)
                            throws IOException {
                        if (path.equals(folder)) {
                            throw failure;
                        }
                        visitor.passedOver(path, failure.toString());
                        return FileVisitResult.CONTINUE;
                    }
                });
    }

    /** The conduit that a file name is the number of; empty if it is none. */
    static OptionalInt conduit(String name) {
        boolean digits = name.chars().allMatch(c -> c >= '0' && c <= '9');
        if (!digits || name.isEmpty() || name.length() > 10) {
            return OptionalInt.empty();
        }
        long number = Long.parseLong(name);
        return number >= 1 && number <= LARGEST
                ? OptionalInt.of((int) number)
                : OptionalInt.empty();
    }
}
