// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.index;

import java.util.Locale;

/** Faults that can be injected into the indexer, to show that they are stopped later. */
public enum IndexingFault {
    /** No fault. */
    NONE,
    /** Documents get the owner and the visibility of a neighbour of the other kind. */
    WRONG_ATTRIBUTES,
    /** Search histories are indexed as well. */
    INDEX_HISTORIES;

    /** The name on the command line, as in "wrong-attributes". */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
