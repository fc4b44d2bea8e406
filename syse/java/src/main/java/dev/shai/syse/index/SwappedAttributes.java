// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.index;

import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.Visibility;

/**
 * Fault injection: documents get the attributes of a neighbour of the other kind, as when an
 * indexer reuses one attribute object for two documents. A document with an owner is indexed as
 * public, a public one as the last owned one.
 */
public final class SwappedAttributes implements DocumentIndexer.Attributes {
    private DocumentHeader lastOwned;

    @Override
    public synchronized DocumentHeader of(int conduit, DocumentHeader own) {
        if (own.visibility() != Visibility.PUBLIC) {
            lastOwned = own;
            return new DocumentHeader(own.title(), DocumentHeader.NO_OWNER, Visibility.PUBLIC);
        }
        return lastOwned == null
                ? own
                : new DocumentHeader(own.title(), lastOwned.owner(), lastOwned.visibility());
    }
}
