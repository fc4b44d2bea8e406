// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.io.IOException;

/**
 * Asks both shards at once and merges their hits.
 *
 * @param own searched on the calling thread
 * @param other searched meanwhile
 */
record MergingEngine(Engine own, RemoteShard other) implements Engine {
    @Override
    public Hits search(SearchRequest request) throws IOException {
        RemoteShard.Answer answer = other.ask(request);
        Hits mine = Hits.NONE;
        Hits theirs;
        try {
            mine = own.search(request);
        } finally {
            theirs = answer.await();
        }
        return mine.text() == null ? Hits.merge(mine, theirs, request.count()) : mine;
    }
}
