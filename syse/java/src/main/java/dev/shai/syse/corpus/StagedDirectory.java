// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * A directory that is filled beside its destination and takes its place at once by {@link #commit}.
 * A failure before that (a full disk, Ctrl-C) does not change the destination; staged files are
 * removed, unless they are kept for resuming.
 *
 * <p>Use with try-with-resources, on the thread that fills it; {@link #checkInterrupted} now and
 * then lets Ctrl-C through.
 */
final class StagedDirectory implements AutoCloseable {
    private static final long CLEANUP_SECONDS = 20;

    /** Thrown in the filling thread after Ctrl-C. */
    static final class Interruption extends IOException {
        private static final long serialVersionUID = 1L;

        Interruption(Path destination, boolean kept) {
            super(
                    "interrupted; "
                            + destination
                            + " is as it was before"
                            + (kept ? ", run the same command to go on" : ""));
        }
    }

    private final Path destination;
    private final Path staging;
    private final boolean keepUnfinished;
    private final CountDownLatch closed = new CountDownLatch(1);
    private final Thread onShutdown = new Thread(this::interrupt, "cleanup");
    private volatile boolean interrupted;
    private boolean committed;

    /**
     * Starts staging, with an empty directory unless unfinished files were kept and are to be
     * resumed.
     *
     * @param keepUnfinished whether to keep (and begin with) what an unfinished run has staged
     */
    StagedDirectory(Path destination, boolean keepUnfinished) throws IOException {
        this.destination = destination.toAbsolutePath().normalize();
        this.staging =
                this.destination.resolveSibling("." + this.destination.getFileName() + ".partial");
        this.keepUnfinished = keepUnfinished;
        if (!keepUnfinished) {
            deleteTree(staging);
        }
        Files.createDirectories(staging);
        Runtime.getRuntime().addShutdownHook(onShutdown);
    }

    /** Where to put files. */
    Path path() {
        return staging;
    }

    /**
     * @throws Interruption after Ctrl-C
     */
    void checkInterrupted() throws Interruption {
        if (interrupted) {
            throw new Interruption(destination, keepUnfinished);
        }
    }

    /** Replaces the destination by the staged directory. */
    void commit() throws IOException {
        checkInterrupted();
        Path old = destination.resolveSibling("." + destination.getFileName() + ".old");
        deleteTree(old);
        boolean replaces = Files.exists(destination);
        if (replaces) {
            move(destination, old);
        }
        try {
            move(staging, destination);
        } catch (IOException failure) {
            if (replaces) {
                move(old, destination);
            }
            throw failure;
        }
        committed = true;
        deleteTree(old);
    }

    private static void move(Path from, Path to) throws IOException {
        try {
            Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
        } catch (AtomicMoveNotSupportedException mounted) {
            throw new IOException(
                    "cannot rename " + from + " to " + to + ": is one of them a mount point?",
                    mounted);
        }
    }

    private void interrupt() {
        interrupted = true;
        try {
            closed.await(CLEANUP_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException impatient) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        try {
            if (!committed && !keepUnfinished) {
                deleteTree(staging);
            }
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot remove " + staging, failure);
        } finally {
            closed.countDown();
            if (!interrupted) {
                Runtime.getRuntime().removeShutdownHook(onShutdown);
            }
        }
    }

    /** Removes a directory with everything in it; nothing happens when there is none. */
    static void deleteTree(Path directory) throws IOException {
        if (!Files.exists(directory)) {
            return;
        }
        Files.walkFileTree(
                directory,
                new SimpleFileVisitor<>() {
                    @Override
                    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
                            throws IOException {
                        Files.delete(file);
                        return FileVisitResult.CONTINUE;
                    }

                    @Override
                    public FileVisitResult postVisitDirectory(Path folder, IOException failure)
                            throws IOException {
                        if (failure != null) {
                            throw failure;
                        }
                        Files.delete(folder);
                        return FileVisitResult.CONTINUE;
                    }
                });
    }
}
