// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.io.Closeable;
import java.io.IOException;
import java.util.List;

/** A stream of documents, the same ones in the same order for the same parameters. */
interface DocumentSource extends Closeable {
    /** The next document, or null after the last. */
    Document next() throws IOException;

    /**
     * The titles of the first documents, at most {@code limit}, if they are known without reading
     * the documents; otherwise empty, and the corpus gets no demo query.
     */
    List<String> titles(int limit);
}
