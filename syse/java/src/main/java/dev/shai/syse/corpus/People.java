// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.util.List;
import java.util.Locale;

/**
 * The users of a corpus, numbered from 0: alice, bob, carol, then user00004 and so on.
 *
 * @param count how many there are, at least {@link #MINIMUM}
 * @param regions where they live, in turn
 */
public record People(int count, List<String> regions) {
    /**
     * The smallest number of users with which bob can be alice's friend, and carol a friend of
     * neither.
     */
    public static final int MINIMUM = 4;

    /** Alice's number; she and bob are friends. */
    public static final int ALICE = 0;

    /** Bob's number. */
    public static final int BOB = 1;

    /** Carol's number; she is a friend of neither alice nor bob. */
    public static final int CAROL = 2;

    private static final List<String> NAMED = List.of("alice", "bob", "carol");

    public People {
        if (count < MINIMUM) {
            throw new IllegalArgumentException(
                    "there must be at least " + MINIMUM + " users; got " + count);
        }
        if (regions.isEmpty()) {
            throw new IllegalArgumentException("there must be at least one region");
        }
        regions = List.copyOf(regions);
    }

    /** The name of a user. */
    public String name(int number) {
        return number < NAMED.size()
                ? NAMED.get(number)
                : String.format(Locale.ROOT, "user%05d", number + 1);
    }

    /** Where a user lives. */
    public String home(int number) {
        return regions.get(number % regions.size());
    }
}
