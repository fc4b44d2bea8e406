// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.index;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/**
 * Documents that could not be read, and when they are tried again. What is in another folder now
 * has another class, so it is tried at once. A fact or a policy may also let it be read where it
 * is, so it is tried in the next step, and then after twice as many steps each time, up to {@link
 * #MOST_STEPS}: each try is a request of the monitor. Not safe for concurrent use.
 */
final class UnreadableDocuments {
    /** The most steps between two tries. */
    static final int MOST_STEPS = 256;

    /**
     * @param folder where it was
     * @param delay the steps between the last try and the next one
     * @param due the step of the next one
     */
    private record Refusal(Path folder, int delay, long due) {}

    private final Map<Integer, Refusal> refusals = new HashMap<>();
    private long step;

    void beginStep() {
        step++;
    }

    boolean isDue(int conduit, Path folder) {
        Refusal refusal = refusals.get(conduit);
        return refusal != null && (step >= refusal.due() || !folder.equals(refusal.folder()));
    }

    /** Forgets what is gone. */
    void retain(ConduitSet present) {
        refusals.keySet().removeIf(conduit -> !present.contains(conduit));
    }

    /** Takes what came of a step: what was tried, by conduit, and what of it could not be read. */
    void note(Map<Integer, Path> tried, Set<Integer> unreadable) {
        tried.forEach(
                (conduit, file) -> {
                    Refusal before = refusals.remove(conduit);
                    if (!unreadable.contains(conduit)) {
                        return;
                    }
                    Path folder = file.getParent();
                    boolean again = before != null && folder.equals(before.folder());
                    int delay = again ? Math.min(2 * before.delay(), MOST_STEPS) : 1;
                    refusals.put(conduit, new Refusal(folder, delay, step + delay));
                });
    }
}
