// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class FriendGraphTest {
    @Property(tries = 300)
    void isSymmetricRegularAndSeatsTheNamedThree(
            @ForAll @IntRange(min = 4, max = 400) int users,
            @ForAll @IntRange(min = 1, max = 120) int wanted,
            @ForAll long seed) {
        FriendGraph graph = new FriendGraph(users, wanted, new Random(seed));
        for (int user = 0; user < users; user++) {
            int[] friends = graph.friendsOf(user);
            assertEquals(graph.degree(), friends.length);
            assertEquals(friends.length, Arrays.stream(friends).distinct().count());
            for (int friend : friends) {
                assertTrue(friend != user, "nobody is their own friend");
                assertTrue(are(graph, friend, user), "friendship is mutual");
            }
        }
        assertTrue(are(graph, People.ALICE, People.BOB));
        assertFalse(are(graph, People.CAROL, People.ALICE));
        assertFalse(are(graph, People.CAROL, People.BOB));
        assertTrue(graph.degree() >= 1 && graph.degree() <= Math.max(wanted, 2));
    }

    @Property(tries = 200)
    void degreeIsAsWantedWheneverAGraphCanHaveIt(
            @ForAll @IntRange(min = 4, max = 400) int users,
            @ForAll @IntRange(min = 2, max = 100) int wanted,
            @ForAll long seed) {
        boolean roomForCarol = 2 * wanted < users;
        boolean exists = wanted % 2 == 0 || users % 2 == 0;
        if (roomForCarol && exists) {
            assertEquals(wanted, new FriendGraph(users, wanted, new Random(seed)).degree());
        }
    }

    @Example
    void refusesAGraphWithoutFriends() {
        assertThrows(IllegalArgumentException.class, () -> new FriendGraph(10, 0, new Random(1)));
    }

    private static boolean are(FriendGraph graph, int one, int other) {
        return Arrays.binarySearch(graph.friendsOf(one), other) >= 0;
    }
}
