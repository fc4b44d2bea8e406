// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.Visibility;
import java.util.Arrays;
import java.util.Optional;
import java.util.Random;

/**
 * Assigns every document an owner, a visibility and perhaps a region that blocks it, in the paper's
 * proportions: 50 % public, 30 % private, 20 % friends-only; owners uniform; 1.1 % blocked in some
 * region and at most 2,250 per region.
 *
 * <p>Each document's assignment follows from the seed and its number alone, so that a corpus of
 * unknown length can be streamed and resumed; the proportions hold in every block of ten
 * (visibility) and of a thousand (blocked) documents, and owners take turns.
 */
public final class Assignments {
    /** The most documents that one region blocks, as in the paper. */
    public static final int REGION_LIMIT = 2250;

    private static final int BLOCK = 10;
    private static final int PUBLIC_IN_BLOCK = 5;
    private static final int PRIVATE_IN_BLOCK = 3;
    private static final int FRIENDS_IN_BLOCK = 2;
    private static final int CENSOR_BLOCK = 1000;
    private static final int CENSORED_IN_BLOCK = 11;

    private final RandomStreams random;
    private final People people;
    private final int[] privateTurns;
    private final int[] friendsTurns;

    private long visibilityBlock = -1;
    private int[] visibilityRanks;
    private long censorBlock = -1;
    private int[] censoredOffsets;

    /** The assignments of a seed for these users. */
    Assignments(RandomStreams random, People people) {
        this.random = random;
        this.people = people;
        this.privateTurns =
                RandomStreams.permutation(people.count(), random.stream("private owners"));
        this.friendsTurns =
                RandomStreams.permutation(people.count(), random.stream("friends owners"));
    }

    /**
     * The assignment of a document.
     *
     * @param number from 1
     */
    Assignment of(int number) {
        int index = number - 1;
        int block = index / BLOCK;
        if (block != visibilityBlock) {
            visibilityBlock = block;
            visibilityRanks = RandomStreams.permutation(BLOCK, random.stream("visibility", block));
        }
        int rank = visibilityRanks[index % BLOCK];
        Optional<String> blockedIn = blockedIn(index);
        if (rank < PUBLIC_IN_BLOCK) {
            return new Assignment(Visibility.PUBLIC, DocumentHeader.NO_OWNER, blockedIn);
        }
        rank -= PUBLIC_IN_BLOCK;
        if (rank < PRIVATE_IN_BLOCK) {
            String owner = inTurn(privateTurns, (long) block * PRIVATE_IN_BLOCK + rank);
            return new Assignment(Visibility.PRIVATE, owner, blockedIn);
        }
        rank -= PRIVATE_IN_BLOCK;
        String owner = inTurn(friendsTurns, (long) block * FRIENDS_IN_BLOCK + rank);
        return new Assignment(Visibility.FRIENDS, owner, blockedIn);
    }

    private String inTurn(int[] turns, long turn) {
        return people.name(turns[(int) (turn % turns.length)]);
    }

    private Optional<String> blockedIn(int index) {
        int block = index / CENSOR_BLOCK;
        if (block != censorBlock) {
            censorBlock = block;
            Random picks = random.stream("blocked", block);
            int[] shuffled = RandomStreams.permutation(CENSOR_BLOCK, picks);
            censoredOffsets = Arrays.copyOf(shuffled, CENSORED_IN_BLOCK);
        }
        for (int rank = 0; rank < CENSORED_IN_BLOCK; rank++) {
            if (censoredOffsets[rank] == index % CENSOR_BLOCK) {
                long turn = (long) block * CENSORED_IN_BLOCK + rank;
                int regions = people.regions().size();
                return turn / regions < REGION_LIMIT
                        ? Optional.of(people.regions().get((int) (turn % regions)))
                        : Optional.empty();
            }
        }
        return Optional.empty();
    }
}
