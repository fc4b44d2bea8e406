// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Makes corpora. A corpus directory is made completely or not at all. If it already is the
 * requested corpus, it is not changed.
 */
public final class Corpora {
    /**
     * The users, and the seed of everything random.
     *
     * @param users how many, at least {@link People#MINIMUM}
     * @param friends how many each should have
     * @param regions where they live
     */
    public record Population(int users, int friends, List<String> regions, long seed) {}

    private Corpora() {}

    /**
     * From a dictionary in dictd's format.
     *
     * @param prefix the dictionary's path without ".dict.dz" and ".index"
     * @param documents how many; 0 for all
     */
    public static void fromDictionary(
            Path prefix, int documents, Population population, Path out, PrintStream log)
            throws IOException {
        DictdDictionary.requireReadable(prefix);
        Map<String, String> inputs =
                digests(DictdDictionary.dictFile(prefix), DictdDictionary.indexFile(prefix));
        CorpusParameters parameters = parameters("gcide", inputs, documents, population);
        new CorpusBuild(parameters, log)
                .run(
                        out,
                        random -> {
                            log.println("dictionary: reading " + prefix);
                            DictdDictionary dictionary = DictdDictionary.read(prefix);
                            int count = documents == 0 ? dictionary.size() : documents;
                            return new DictionarySource(dictionary, count, random.stream("sample"));
                        },
                        false);
    }

    /** From invented words. */
    public static void generated(int documents, Population population, Path out, PrintStream log)
            throws IOException {
        CorpusParameters parameters = parameters("generated", Map.of(), documents, population);
        new CorpusBuild(parameters, log)
                .run(out, random -> new GeneratedSource(documents, random), false);
    }

    /**
     * From a MediaWiki XML dump; after an interruption, the next call continues.
     *
     * @param documents how many at most; 0 for all
     */
    public static void fromWikipedia(
            Path dump, int documents, Population population, Path out, PrintStream log)
            throws IOException {
        // Digesting tens of gigabytes would take as long as loading them.
        String identity = Files.size(dump) + " bytes, " + Files.getLastModifiedTime(dump);
        Map<String, String> inputs = Map.of(dump.getFileName().toString(), identity);
        CorpusParameters parameters = parameters("wikipedia", inputs, documents, population);
        new CorpusBuild(parameters, log)
                .run(out, random -> new WikipediaSource(dump, documents), true);
    }

    private static CorpusParameters parameters(
            String source, Map<String, String> inputs, int documents, Population population) {
        return new CorpusParameters(
                source,
                inputs,
                documents,
                population.users(),
                population.friends(),
                population.regions(),
                population.seed());
    }

    private static Map<String, String> digests(Path... files) throws IOException {
        Map<String, String> digests = new LinkedHashMap<>();
        for (Path file : files) {
            digests.put(file.getFileName().toString(), sha256(file));
        }
        return digests;
    }

    private static String sha256(Path file) throws IOException {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            try (InputStream input = new DigestInputStream(Files.newInputStream(file), digest)) {
                input.transferTo(OutputStream.nullOutputStream());
            }
            return HexFormat.of().formatHex(digest.digest());
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException("every JDK has SHA-256", impossible);
        }
    }
}
