// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.document;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.ObjIntConsumer;

/**
 * The documents beneath a folder, listed again and again: a folder whose time of change is another
 * one is read, and the others are only looked at. Not safe for concurrent use.
 */
public final class DocumentListing {
    /** Another change of a folder has another time from this age of the last one on. */
    private static final long SETTLED_MILLISECONDS = 2000;

    private record Folder(FileTime changed, int[] documents, List<Path> folders) {}

    private static final Folder NOTHING = new Folder(FileTime.fromMillis(0), new int[0], List.of());

    private final Path top;
    private Map<Path, Folder> known = new HashMap<>();

    /** Lists beneath {@code top}, in which a document's file name is its conduit's number. */
    public DocumentListing(Path top) {
        this.top = top;
    }

    /**
     * Calls {@code visitor} with the folder and the number of each document that is there now. What
     * may not be read holds no documents; of what cannot be read for another reason, the former
     * content is given.
     *
     * @throws IOException when the top folder cannot be read
     */
    public void list(ObjIntConsumer<Path> visitor) throws IOException {
        Map<Path, Folder> found = new HashMap<>(known.size() * 2);
        List<Path> ahead = new ArrayList<>(List.of(top));
        while (!ahead.isEmpty()) {
            Path path = ahead.remove(ahead.size() - 1);
            Folder folder = look(path);
            found.put(path, folder);
            for (int document : folder.documents()) {
                visitor.accept(path, document);
            }
            ahead.addAll(folder.folders());
        }
        known = found;
    }

    private Folder look(Path path) throws IOException {
        Folder before = known.get(path);
        try {
            FileTime changed = Files.getLastModifiedTime(path);
            if (before != null && before.changed().equals(changed)) {
                return before;
            }
            boolean settled =
                    System.currentTimeMillis() - changed.toMillis() > SETTLED_MILLISECONDS;
            return read(path, settled ? changed : FileTime.fromMillis(0));
        } catch (NoSuchFileException | NotDirectoryException | AccessDeniedException without) {
            if (path.equals(top)) {
                throw without;
            }
            return NOTHING;
        } catch (IOException failure) {
            if (path.equals(top) || before == null) {
                throw failure;
            }
            return before;
        }
    }

    private static Folder read(Path path, FileTime changed) throws IOException {
        List<Path> folders = new ArrayList<>();
        int[] documents = new int[16];
        int count = 0;
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(path)) {
            for (Path entry : entries) {
                if (Files.isDirectory(entry)) {
                    folders.add(entry);
                    continue;
                }
                OptionalInt conduit = DocumentTree.conduit(entry.getFileName().toString());
                if (conduit.isPresent()) {
                    if (count == documents.length) {
                        documents = java.util.Arrays.copyOf(documents, 2 * count);
                    }
                    documents[count++] = conduit.getAsInt();
                }
            }
        } catch (DirectoryIteratorException broken) {
            throw broken.getCause();
        } catch (UncheckedIOException broken) {
            throw broken.getCause();
        }
        return new Folder(changed, java.util.Arrays.copyOf(documents, count), folders);
    }
}
