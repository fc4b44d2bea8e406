// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import dev.shai.syse.CommandFailure;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.GZIPInputStream;

/**
 * A dictionary in the format of dictd (dictd(8), "DATABASE FORMAT"): {@code NAME.index} has lines
 * of headword, offset and length in base 64; {@code NAME.dict.dz} is a gzip file of the entries.
 *
 * <p>An entry can have several headwords, and a headword several entries. One document is made for
 * each headword that some entry begins with, case aside, with all its entries; an entry that begins
 * with none of its headwords goes to the first of them.
 */
final class DictdDictionary {
    private static final String DIGITS =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    private static final String DATABASE_ENTRY_PREFIX = "00-";

    /** The position of an entry in the text, in bytes. */
    private record Extent(int offset, int length) {}

    private record Article(String title, List<Extent> entries) {}

    private final byte[] text;
    private final List<Article> articles;

    private DictdDictionary(byte[] text, List<Article> articles) {
        this.text = text;
        this.articles = articles;
    }

    /**
     * Reads a whole dictionary into memory (GCIDE: 40 MB).
     *
     * @param prefix the path without ".dict.dz" and ".index"
     * @throws CommandFailure when it is missing or damaged
     */
    static DictdDictionary read(Path prefix) throws IOException {
        requireReadable(prefix);
        byte[] text;
        try (InputStream input =
                new GZIPInputStream(Files.newInputStream(dictFile(prefix)), 1 << 16)) {
            text = input.readAllBytes();
        }
        return new DictdDictionary(
                text, merge(text, headwordsByExtent(indexFile(prefix), text.length)));
    }

    /**
     * @throws CommandFailure when a file of the dictionary is missing
     */
    static void requireReadable(Path prefix) {
        for (Path file : List.of(dictFile(prefix), indexFile(prefix))) {
            if (!Files.isReadable(file)) {
                throw new CommandFailure(
                        file + " is missing: install the dictionary (apt-get install dict-gcide)");
            }
        }
    }

    static Path dictFile(Path prefix) {
        return prefix.resolveSibling(prefix.getFileName() + ".dict.dz");
    }

    static Path indexFile(Path prefix) {
        return prefix.resolveSibling(prefix.getFileName() + ".index");
    }

    /** How many documents there are. */
    int size() {
        return articles.size();
    }

    /** The title of a document, from 0. */
    String title(int number) {
        return articles.get(number).title();
    }

    /** The document of that number, from 0; ill-formed UTF-8 is replaced. */
    Document document(int number) {
        StringBuilder entries = new StringBuilder();
        for (Extent extent : articles.get(number).entries()) {
            entries.append(entry(text, extent).strip()).append("\n\n");
        }
        return new Document(title(number), entries.toString());
    }

    private static Map<Extent, List<String>> headwordsByExtent(Path index, int textLength)
            throws IOException {
        Map<Extent, List<String>> headwords = new LinkedHashMap<>();
        try (BufferedReader lines = Files.newBufferedReader(index, StandardCharsets.UTF_8)) {
            int number = 0;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                number++;
                String[] fields = line.split("\t", -1);
                if (fields.length < 3) {
                    throw damaged(index, number, "three fields separated by tabs were expected");
                }
                if (fields[0].startsWith(DATABASE_ENTRY_PREFIX) || fields[0].isBlank()) {
                    continue;
                }
                long offset = decode(fields[1], index, number);
                long length = decode(fields[2], index, number);
                if (offset + length > textLength) {
                    throw damaged(index, number, "the entry lies beyond the end of the text");
                }
                Extent extent = new Extent((int) offset, (int) length);
                headwords.computeIfAbsent(extent, key -> new ArrayList<>(1)).add(fields[0]);
            }
        }
        return headwords;
    }

    private static long decode(String number, Path index, int line) {
        long value = 0;
        for (int i = 0; i < number.length(); i++) {
            int digit = DIGITS.indexOf(number.charAt(i));
            if (digit < 0 || value > Integer.MAX_VALUE) {
                throw damaged(index, line, "\"" + number + "\" is not a number in base 64");
            }
            value = value * 64 + digit;
        }
        return value;
    }

    private static CommandFailure damaged(Path index, int line, String what) {
        return new CommandFailure(index + ":" + line + ": " + what + "; reinstall the dictionary");
    }

    private static List<Article> merge(byte[] text, Map<Extent, List<String>> headwords) {
        Map<String, Article> byTitle = new TreeMap<>();
        headwords.forEach(
                (extent, candidates) -> {
                    String title = titleOf(text, extent, candidates);
                    byTitle.computeIfAbsent(
                                    title.toLowerCase(Locale.ROOT),
                                    key -> new Article(title, new ArrayList<>(1)))
                            .entries()
                            .add(extent);
                });
        return List.copyOf(byTitle.values());
    }

    private static String titleOf(byte[] text, Extent extent, List<String> candidates) {
        String beginning =
                entry(text, new Extent(extent.offset(), Math.min(extent.length(), 400)))
                        .stripLeading();
        String best = null;
        for (String candidate : candidates) {
            boolean begins = beginning.regionMatches(true, 0, candidate, 0, candidate.length());
            if (begins && (best == null || candidate.length() > best.length())) {
                best = candidate;
            }
        }
        return best == null ? candidates.get(0) : best;
    }

    private static String entry(byte[] text, Extent extent) {
        return new String(text, extent.offset(), extent.length(), StandardCharsets.UTF_8);
    }
}
