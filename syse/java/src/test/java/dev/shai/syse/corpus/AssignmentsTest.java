// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.shai.syse.document.Visibility;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class AssignmentsTest {
    private static final List<String> REGIONS = List.of("us", "de", "fr");

    @Property(tries = 50)
    void keepsThePapersProportions(
            @ForAll @IntRange(min = 1, max = 300) int tens,
            @ForAll @IntRange(min = 4, max = 50) int users,
            @ForAll long seed) {
        Assignments assignments =
                new Assignments(new RandomStreams(seed), new People(users, REGIONS));
        Map<Visibility, Integer> counts = new EnumMap<>(Visibility.class);
        Map<String, Integer> privateByOwner = new HashMap<>();
        for (int number = 1; number <= 10 * tens; number++) {
            Assignment assignment = assignments.of(number);
            counts.merge(assignment.visibility(), 1, Integer::sum);
            if (assignment.visibility() == Visibility.PRIVATE) {
                privateByOwner.merge(assignment.owner(), 1, Integer::sum);
            }
        }
        assertEquals(5 * tens, counts.get(Visibility.PUBLIC));
        assertEquals(3 * tens, counts.get(Visibility.PRIVATE));
        assertEquals(2 * tens, counts.get(Visibility.FRIENDS));
        int most = Collections.max(privateByOwner.values());
        int fewest = privateByOwner.size() < users ? 0 : Collections.min(privateByOwner.values());
        assertTrue(most - fewest <= 1, "owners take their turns");
    }

    @Property(tries = 10)
    void blocksElevenOfAThousandEvenlyOverRegions(@ForAll long seed) {
        Map<String, Integer> blocked = countBlocked(seed, 9_000);
        assertEquals(Map.of("us", 33, "de", 33, "fr", 33), blocked);
    }

    @Example
    void noRegionBlocksMoreThanTheLimit() {
        Map<String, Integer> blocked = countBlocked(1, 700_000);
        int limit = Assignments.REGION_LIMIT;
        assertEquals(Map.of("us", limit, "de", limit, "fr", limit), blocked);
    }

    @Property(tries = 20)
    void dependsOnNothingButSeedAndNumber(
            @ForAll @IntRange(min = 1, max = 100_000) int number, @ForAll long seed) {
        People people = new People(100, REGIONS);
        Assignments fresh = new Assignments(new RandomStreams(seed), people);
        Assignments used = new Assignments(new RandomStreams(seed), people);
        used.of(1);
        used.of(5_000);
        assertEquals(fresh.of(number), used.of(number));
    }

    private static Map<String, Integer> countBlocked(long seed, int documents) {
        Assignments assignments = new Assignments(new RandomStreams(seed), new People(10, REGIONS));
        Map<String, Integer> blocked = new HashMap<>();
        for (int number = 1; number <= documents; number++) {
            assignments
                    .of(number)
                    .blockedIn()
                    .ifPresent(region -> blocked.merge(region, 1, Integer::sum));
        }
        return blocked;
    }
}
