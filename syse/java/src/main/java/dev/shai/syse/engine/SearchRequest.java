// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.util.List;

/**
 * One query of one user.
 *
 * @param query the requester's number for it, an unsigned 32-bit integer; the answer repeats it
 * @param user the user who asks; the engine restricts its results by this
 * @param friends the user's friends as the requester states them
 * @param text the words to search for
 * @param count how many results are wanted, 1 … {@link Hits#LIMIT}
 * @param checked whether the answer goes through the reference monitor
 */
public record SearchRequest(
        int query, String user, List<String> friends, String text, int count, boolean checked) {
    /** The same request under another number. */
    SearchRequest numbered(int number) {
        return new SearchRequest(number, user, friends, text, count, checked);
    }
}
