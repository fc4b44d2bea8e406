// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.index;

import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.Visibility;
import dev.shai.syse.keyvalue.KeyValueConnection;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Path;
import java.util.List;

/**
 * Fault injection: an indexer misconfigured to index search histories. A history is no document and
 * has no conduit number that results could name, so it is indexed as if it were text of a public
 * document: a user who searches for the words of another user's search then finds that document.
 */
public final class HistoryAttachment implements DocumentIndexer.Attributes {
    private DocumentHeader publicHeader;
    private int publicConduit;

    /** Documents keep their own headers; a public one is remembered. */
    @Override
    public synchronized DocumentHeader of(int conduit, DocumentHeader own) {
        if (publicHeader == null && own.visibility() == Visibility.PUBLIC) {
            publicHeader = own;
            publicConduit = conduit;
        }
        return own;
    }

    /**
     * Reads everybody's history and indexes it; when all documents have been indexed.
     *
     * @return how many histories there were
     * @throws IOException when the store cannot be reached or refuses, as it should
     */
    public synchronized int addTo(IndexBuild build, Path socket) throws IOException {
        StringBuilder text = new StringBuilder();
        int histories = 0;
        try (KeyValueConnection store = new KeyValueConnection(socket)) {
            store.send("KEYS", "history:*");
            List<String> keys = store.receive();
            for (String key : keys) {
                store.send("LRANGE", key, "0", "-1");
                store.receive().forEach(entry -> text.append(entry).append('\n'));
                histories++;
            }
        }
        if (publicHeader != null && histories > 0) {
            build.add(publicConduit, publicHeader, new StringReader(text.toString()));
        }
        return histories;
    }
}
