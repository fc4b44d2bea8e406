// SPDX-License-Identifier: BSD-2-Clause

import java.io.BufferedReader;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Does with mapped paths what Lucene 9's FSDirectory, MMapDirectory and NativeFSLockFactory do, and
 * what a search engine does with its pipes and channels. Run by java_test.sh; ends with an exception
 * at the first thing that is not as on an ordinary file system.
 */
public final class Probe {
    private Probe() {}

    public static void main(String[] arguments) throws IOException {
        readsTheView();
        Path index = keepsAnIndex();
        locks(index);
        replacesAtomically(index);
        usesOldFileInterfaces(index);
        removes(index);
        staysInside();
        answersQueries();
        System.out.println("probe: all is well");
    }

    private static void check(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError("not so: " + what);
        }
    }

    private static List<String> list(Path directory) throws IOException {
        List<String> names = new ArrayList<>();
        try (DirectoryStream<Path> stream = Files.newDirectoryStream(directory)) {
            for (Path entry : stream) {
                names.add(entry.getFileName().toString());
            }
        }
        Collections.sort(names);
        return names;
    }

    private static void readsTheView() throws IOException {
        Path view = Path.of("/shai/view");
        check(list(view).equals(List.of("3")), "the view lists its classes");
        Path document = view.resolve("3/0/17");
        try (var stream = Files.newInputStream(document)) {
            check(new String(stream.readAllBytes()).equals("seventeen"), "newInputStream reads");
        }
        check(Files.readString(document).equals("seventeen"), "readString reads");
        try (FileChannel channel = FileChannel.open(document, StandardOpenOption.READ)) {
            ByteBuffer mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            check(mapped.get(0) == 's' && mapped.remaining() == 9, "map maps");
        }
        try (var walk = Files.walk(view)) {
            check(walk.filter(Files::isRegularFile).count() == 1, "walk finds the document");
        }
        BasicFileAttributes attributes = Files.readAttributes(document, BasicFileAttributes.class);
        check(attributes.isRegularFile() && attributes.size() == 9, "attributes are the document's");
        check(Files.isReadable(document) && !Files.exists(view.resolve("3/0/18")), "existence is told");
    }

    private static Path keepsAnIndex() throws IOException {
        Path index = Path.of("/index/0/lucene");
        Files.createDirectories(index);
        Files.createDirectories(index);
        index = index.toRealPath();
        check(index.toString().equals("/index/0/lucene"), "toRealPath stays mapped: " + index);
        Path segment = index.resolve("_0.cfs");
        try (FileChannel output = FileChannel.open(segment, StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW)) {
            output.write(ByteBuffer.wrap("segment".getBytes()));
            output.force(true);
        }
        try {
            Files.newOutputStream(segment, StandardOpenOption.CREATE_NEW).close();
            throw new AssertionError("CREATE_NEW overwrites");
        } catch (FileAlreadyExistsException expected) {
            check(expected.getFile().equals(segment.toString()), "the exception names the mapped path");
        }
        // IOUtils.fsync of a directory
        try (FileChannel directory = FileChannel.open(index, StandardOpenOption.READ)) {
            directory.force(true);
        }
        check(Files.size(segment) == 7, "size is told");
        check(Files.getFileStore(index).getUsableSpace() > 0, "the file store has a size");
        return index;
    }

    /** NativeFSLockFactory: create, resolve, lock, and compare the creation time at every use. */
    private static void locks(Path index) throws IOException {
        Path file = index.resolve("write.lock");
        Files.createFile(file);
        Path real = file.toRealPath();
        FileTime created = Files.readAttributes(real, BasicFileAttributes.class).creationTime();
        try (FileChannel channel = FileChannel.open(real, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                FileLock lock = channel.tryLock()) {
            check(lock != null && lock.isValid(), "tryLock locks");
            check(channel.size() == 0, "the lock file is empty");
            Object again = Files.getAttribute(real, "creationTime");
            check(created.equals(again), "the creation time stays: " + created + ", " + again);
        }
        Files.delete(file);
    }

    private static void replacesAtomically(Path index) throws IOException {
        Path pending = index.resolve("pending_segments_1");
        Path segments = index.resolve("segments_1");
        Files.writeString(pending, "one");
        Files.move(pending, segments, StandardCopyOption.ATOMIC_MOVE);
        Files.writeString(pending, "two");
        Files.move(pending, segments, StandardCopyOption.ATOMIC_MOVE);
        check(Files.readString(segments).equals("two"), "an atomic move replaces");
        check(list(index).equals(List.of("_0.cfs", "segments_1")), "the directory lists what is there");
        Files.copy(segments, pending);
        Files.setLastModifiedTime(pending, FileTime.fromMillis(1000));
        check(Files.getLastModifiedTime(pending).toMillis() == 1000, "times are set");
        Files.delete(pending);
    }

    private static void usesOldFileInterfaces(Path index) throws IOException {
        File file = new File(index.toString(), "old");
        try (FileOutputStream stream = new FileOutputStream(file)) {
            stream.write(65);
        }
        try (RandomAccessFile random = new RandomAccessFile(file, "rw")) {
            random.setLength(3);
        }
        try (FileInputStream stream = new FileInputStream(file)) {
            check(stream.readAllBytes().length == 3, "FileInputStream reads");
        }
        check(file.getCanonicalPath().equals("/index/0/lucene/old"), "getCanonicalPath stays mapped");
        check(file.length() == 3 && file.isFile() && file.canWrite(), "File sees the file");
        check(new File("/index/0").list().length == 1, "File.list lists");
        check(file.renameTo(new File(index.toString(), "older")), "renameTo renames");
        check(new File(index.toString(), "older").delete(), "delete deletes");
        check(new File("/index/made/by/mkdirs").mkdirs(), "mkdirs makes");
    }

    private static void removes(Path index) throws IOException {
        Files.delete(index.resolve("_0.cfs"));
        Files.delete(index.resolve("segments_1"));
        try {
            Files.delete(index.resolve("segments_1"));
            throw new AssertionError("a file is deleted twice");
        } catch (NoSuchFileException expected) {
            check(list(index).isEmpty(), "everything is deleted");
        }
        Files.delete(index);
        check(!Files.exists(index), "the directory is deleted");
    }

    private static void staysInside() {
        check(!Files.exists(Path.of("/index/../etc/passwd")), "a path that leaves a prefix is the host's");
        check(Files.exists(Path.of("/etc/../index/0")), "and one that enters is mapped");
    }

    private static void answersQueries() throws IOException {
        Path channelPath = Path.of("/shai/channel/results/0");
        try (BufferedReader queries = Files.newBufferedReader(Path.of("/shai/pipe/queries/0"));
                FileChannel results = FileChannel.open(channelPath, StandardOpenOption.WRITE)) {
            int number = 0;
            while (queries.readLine() != null) {
                number++;
                ByteBuffer record = ByteBuffer.allocateDirect(8 + 4 * 3).order(ByteOrder.LITTLE_ENDIAN);
                record.putInt(number).putInt(0).putInt(17).putInt(18).putInt(19).flip();
                check(results.write(record) == 20, "a transfer is one write");
            }
            check(number == 2, "two lines were queries");
        }
    }
}
