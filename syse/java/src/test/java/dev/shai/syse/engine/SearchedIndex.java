// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.index.IndexBuild;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** Makes and searches small indexes. */
public final class SearchedIndex {
    /** A document to be indexed. */
    record Entry(DocumentHeader header, String body) {}

    private SearchedIndex() {}

    /** Builds an index of documents by conduit number. */
    static void build(Path folder, int shards, Map<Integer, Entry> documents) throws IOException {
        try (IndexBuild build = new IndexBuild(folder, shards)) {
            for (Map.Entry<Integer, Entry> document : documents.entrySet()) {
                Entry entry = document.getValue();
                build.add(document.getKey(), entry.header(), new StringReader(entry.body()));
            }
            build.merge();
            build.commit();
        }
    }

    /** Asks the shards of an index one after the other, and merges. */
    static Hits search(Path folder, Fault fault, SearchRequest request) throws IOException {
        Hits merged = Hits.NONE;
        Complaints complaints = new Complaints(System.err);
        for (int number = 0; Files.exists(folder.resolve("" + number)); number++) {
            try (Shard shard = new Shard(folder.resolve("" + number), fault, complaints)) {
                Hits hits = shard.engine().search(request);
                if (hits.text() != null && hits.text().length > 0) {
                    return hits;
                }
                merged = Hits.merge(merged, hits, request.count());
            }
        }
        return merged;
    }

    /** The conduits that a sound engine finds. */
    public static Set<Integer> find(Path folder, String user, List<String> friends, String text)
            throws IOException {
        SearchRequest request = new SearchRequest(1, user, friends, text, Hits.LIMIT, false);
        Set<Integer> found = new TreeSet<>();
        for (int conduit : search(folder, Fault.NONE, request).conduits()) {
            found.add(conduit);
        }
        return found;
    }
}
