// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.Visibility;
import java.util.Optional;

/**
 * The owner and the visibility of a document.
 *
 * @param visibility whom its owner shows it to
 * @param owner a user's name, or {@link DocumentHeader#NO_OWNER}
 * @param blockedIn the region that blocks it, if one does
 */
public record Assignment(Visibility visibility, String owner, Optional<String> blockedIn) {
    /** The path of document {@code number} in the pipeline, which is its conduit's name. */
    public String conduit(int number) {
        String folder =
                visibility == Visibility.PUBLIC
                        ? visibility.label()
                        : visibility.label() + "/" + owner;
        return "/corpus/" + folder + "/" + number + ".txt";
    }

    Assignment withBlockedIn(Optional<String> region) {
        return new Assignment(visibility, owner, region);
    }

    Assignment withOwner(String name) {
        return new Assignment(visibility, name, blockedIn);
    }

    /** This document's blacklist entry with another one's owner and visibility. */
    Assignment sharedLike(Assignment other) {
        return new Assignment(other.visibility, other.owner, blockedIn);
    }
}
