// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.io.IOException;
import java.nio.file.Path;
import org.apache.lucene.search.ReferenceManager;

/**
 * Gives out the newest complete commit of a shard. {@link #acquire} before a search, {@link
 * #release} after it; {@link #maybeRefresh} looks for a newer commit. An old commit is closed when
 * its last search is over.
 */
final class ShardReaders extends ReferenceManager<ShardReader> {
    private final Path shard;

    /** Opens the shard in a folder. */
    ShardReaders(Path shard) throws IOException {
        this.shard = shard;
        current = ShardReader.open(shard);
    }

    @Override
    protected void decRef(ShardReader reference) throws IOException {
        reference.reader().decRef();
    }

    @Override
    protected ShardReader refreshIfNeeded(ShardReader reference) throws IOException {
        return reference.reopen(shard).orElse(null);
    }

    @Override
    protected boolean tryIncRef(ShardReader reference) {
        return reference.reader().tryIncRef();
    }

    @Override
    protected int getRefCount(ShardReader reference) {
        return reference.reader().getRefCount();
    }
}
