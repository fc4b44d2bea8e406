// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.document;

import java.util.Locale;
import java.util.Optional;

/** The users to whom a document's owner shows it, before any region's blacklist. */
public enum Visibility {
    /** Everybody; such a document has no owner. */
    PUBLIC,
    /** Its owner. */
    PRIVATE,
    /** Its owner and the owner's friends. */
    FRIENDS;

    private final String label = name().toLowerCase(Locale.ROOT);

    /** The word used in document headers, in paths and in the index. */
    public String label() {
        return label;
    }

    /** The visibility of that label, if there is one. */
    public static Optional<Visibility> ofLabel(String label) {
        for (Visibility visibility : values()) {
            if (visibility.label.equals(label)) {
                return Optional.of(visibility);
            }
        }
        return Optional.empty();
    }
}
