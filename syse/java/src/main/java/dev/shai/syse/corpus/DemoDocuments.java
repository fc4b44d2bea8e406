// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.Visibility;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

/**
 * Prepares one instructive search: picks a word that several titles share and assigns these
 * documents so that they are alice's and bob's private and friends-only ones, carol's, and public
 * ones, one of which is blocked in bob's region. Documents swap their assignments, so the corpus's
 * proportions do not change.
 */
final class DemoDocuments {
    /** The number of titles that are searched. */
    static final int TITLES_LIMIT = 200_000;

    private static final int WANTED_TITLES = 14;
    private static final int SHORTEST_WORD = 4;

    private record Share(Visibility visibility, int user) {}

    /** In order of importance, for a word that fewer titles share. */
    private static final List<Share> SHARES =
            List.of(
                    new Share(Visibility.PRIVATE, People.ALICE),
                    new Share(Visibility.PRIVATE, People.BOB),
                    new Share(Visibility.PUBLIC, -1),
                    new Share(Visibility.FRIENDS, People.ALICE),
                    new Share(Visibility.FRIENDS, People.BOB),
                    new Share(Visibility.FRIENDS, People.CAROL),
                    new Share(Visibility.PUBLIC, -1),
                    new Share(Visibility.PRIVATE, People.ALICE),
                    new Share(Visibility.PRIVATE, People.BOB),
                    new Share(Visibility.PRIVATE, People.ALICE),
                    new Share(Visibility.PRIVATE, People.BOB),
                    new Share(Visibility.PRIVATE, People.CAROL));

    private final Assignments assignments;
    private final People people;
    private final int count;
    private final Map<Integer, Assignment> changed = new TreeMap<>();
    private final Set<Integer> demo = new HashSet<>();
    private String query;

    /**
     * @param titles of documents 1, 2, …; may be empty
     */
    DemoDocuments(Assignments assignments, People people, List<String> titles) {
        this.assignments = assignments;
        this.people = people;
        this.count = titles.size();
        List<Integer> numbers = pickWord(titles);
        demo.addAll(numbers);
        for (int i = 0; i < numbers.size(); i++) {
            // Titles beyond the list are public, so that everybody finds something.
            share(numbers.get(i), i < SHARES.size() ? SHARES.get(i) : SHARES.get(2));
        }
        settleBlacklist(numbers);
    }

    /** The word to search for, if titles share one. */
    Optional<String> query() {
        return Optional.ofNullable(query);
    }

    /** The assignment of a document, including the demo's changes. */
    Assignment of(int number) {
        Assignment assignment = changed.get(number);
        return assignment == null ? assignments.of(number) : assignment;
    }

    /** The documents whose titles have the word, with their assignments. */
    Map<Integer, Assignment> documents() {
        Map<Integer, Assignment> found = new TreeMap<>();
        demo.forEach(number -> found.put(number, of(number)));
        return found;
    }

    /** The documents with the word whose number of titles is nearest to the wanted one. */
    private List<Integer> pickWord(List<String> titles) {
        Map<String, List<Integer>> numbersByWord = new TreeMap<>();
        int number = 0;
        for (String title : titles) {
            number++;
            for (String word : distinctWords(title)) {
                numbersByWord.computeIfAbsent(word, key -> new ArrayList<>()).add(number);
            }
        }
        int smallest = Integer.MAX_VALUE;
        for (Map.Entry<String, List<Integer>> entry : numbersByWord.entrySet()) {
            int distance = Math.abs(entry.getValue().size() - WANTED_TITLES);
            if (entry.getValue().size() > 1 && distance < smallest) {
                smallest = distance;
                query = entry.getKey();
            }
        }
        return query == null ? List.of() : numbersByWord.get(query);
    }

    private static Set<String> distinctWords(String title) {
        Set<String> words = new HashSet<>();
        for (String word : title.toLowerCase(Locale.ROOT).split("[^\\p{L}]+")) {
            if (word.length() >= SHORTEST_WORD) {
                words.add(word);
            }
        }
        return words;
    }

    /** Gives a document an owner and visibility by swapping with one that has them. */
    private void share(int number, Share wanted) {
        String owner = wanted.user() < 0 ? DocumentHeader.NO_OWNER : people.name(wanted.user());
        Assignment before = of(number);
        if (before.visibility() == wanted.visibility() && before.owner().equals(owner)) {
            return;
        }
        int partner = find(wanted.visibility(), owner);
        if (partner > 0) {
            Assignment given = of(partner);
            changed.put(number, before.sharedLike(given));
            changed.put(partner, given.sharedLike(before));
        }
        Assignment after = of(number);
        if (after.visibility() != wanted.visibility() || !after.owner().equals(owner)) {
            changed.put(number, new Assignment(wanted.visibility(), owner, before.blockedIn()));
        }
    }

    /**
     * A document outside the demo with that owner and visibility, or else that visibility; or 0.
     */
    private int find(Visibility visibility, String owner) {
        int second = 0;
        for (int number = 1; number <= count; number++) {
            Assignment assignment = of(number);
            if (assignment.visibility() != visibility || demo.contains(number)) {
                continue;
            }
            if (assignment.owner().equals(owner)) {
                return number;
            }
            second = second == 0 ? number : second;
        }
        return second;
    }

    /** Moves blacklist entries so that exactly one public demo document is blocked, for bob. */
    private void settleBlacklist(List<Integer> numbers) {
        String bobsRegion = people.home(People.BOB);
        int blocked = 0;
        for (int number : numbers) {
            Assignment assignment = of(number);
            if (blocked == 0 && assignment.visibility() == Visibility.PUBLIC) {
                blocked = number;
                swapBlacklisting(number, Optional.of(bobsRegion));
            } else if (assignment.blockedIn().isPresent()) {
                swapBlacklisting(number, Optional.empty());
            }
        }
    }

    private void swapBlacklisting(int number, Optional<String> wanted) {
        Assignment before = of(number);
        for (int partner = 1; partner <= count; partner++) {
            Assignment other = of(partner);
            if (other.blockedIn().equals(wanted) && !demo.contains(partner)) {
                changed.put(number, before.withBlockedIn(wanted));
                changed.put(partner, other.withBlockedIn(before.blockedIn()));
                return;
            }
        }
    }
}
