// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.util.Arrays;
import java.util.Random;

/**
 * The friendships, as a circulant graph. Users sit on a ring in random order, and each is a friend
 * of those at a few random distances in both directions. That is symmetric and exactly regular by
 * construction, and needs no memory for edges.
 *
 * <p>An odd number of friends for an odd number of users is impossible in any graph; it is rounded
 * down (1 up to 2). If carol would have no place away from both alice and bob, the number is
 * reduced.
 */
public final class FriendGraph {
    private final int users;
    private final int degree;
    private final int[] distances;
    private final int[] positionOf;
    private final int[] userAt;

    /**
     * @param users how many, at least {@link People#MINIMUM}
     * @param wanted how many friends each should have, at least 1
     * @param random decides distances and seats
     */
    FriendGraph(int users, int wanted, Random random) {
        if (wanted < 1) {
            throw new IllegalArgumentException("everybody needs at least 1 friend; got " + wanted);
        }
        this.users = users;
        int attempt = Math.min(wanted, users - 2);
        int[] steps = pickDistances(attempt, random);
        // Below half of the users there always is a place: alice and bob exclude 2 * degree.
        while (carolsPosition(steps) < 0) {
            attempt--;
            steps = pickDistances(attempt, random);
        }
        this.distances = steps;
        this.degree = neighbours(0, steps).length;
        this.userAt = seat(random);
        this.positionOf = new int[users];
        for (int position = 0; position < users; position++) {
            positionOf[userAt[position]] = position;
        }
    }

    /** How many friends everybody has. */
    public int degree() {
        return degree;
    }

    /** The friends of a user, ascending. */
    public int[] friendsOf(int user) {
        int[] friends = neighbours(positionOf[user], distances);
        for (int i = 0; i < friends.length; i++) {
            friends[i] = userAt[friends[i]];
        }
        Arrays.sort(friends);
        return friends;
    }

    /** Distances on the ring, ascending; the distance of half the ring counts for one friend. */
    private int[] pickDistances(int wanted, Random random) {
        int pairs = Math.max(wanted / 2, users % 2);
        int longest = (users - 1) / 2;
        int[] candidates = RandomStreams.permutation(longest, random);
        boolean opposite = wanted % 2 == 1 && users % 2 == 0;
        int[] picked = new int[Math.min(pairs, longest) + (opposite ? 1 : 0)];
        for (int i = 0; i < Math.min(pairs, longest); i++) {
            picked[i] = candidates[i] + 1;
        }
        if (opposite) {
            picked[picked.length - 1] = users / 2;
        }
        Arrays.sort(picked);
        return picked;
    }

    private int[] neighbours(int position, int[] steps) {
        int[] found = new int[2 * steps.length];
        int count = 0;
        for (int step : steps) {
            found[count++] = (position + step) % users;
            if (2 * step != users) {
                found[count++] = (position - step + users) % users;
            }
        }
        return Arrays.copyOf(found, count);
    }

    /** A position that is next to neither position 0 (alice) nor bob's; -1 when there is none. */
    private int carolsPosition(int[] steps) {
        boolean[] taken = new boolean[users];
        int bob = steps[0];
        taken[0] = true;
        taken[bob] = true;
        for (int neighbour : neighbours(0, steps)) {
            taken[neighbour] = true;
        }
        for (int neighbour : neighbours(bob, steps)) {
            taken[neighbour] = true;
        }
        for (int position = 0; position < users; position++) {
            if (!taken[position]) {
                return position;
            }
        }
        return -1;
    }

    /** Seats everybody at random, then swaps alice, bob and carol into their places. */
    private int[] seat(Random random) {
        int[] seats = RandomStreams.permutation(users, random);
        swapInto(seats, 0, People.ALICE);
        swapInto(seats, distances[0], People.BOB);
        swapInto(seats, carolsPosition(distances), People.CAROL);
        return seats;
    }

    private static void swapInto(int[] seats, int position, int user) {
        for (int i = 0; i < seats.length; i++) {
            if (seats[i] == user) {
                seats[i] = seats[position];
                seats[position] = user;
                return;
            }
        }
    }
}
