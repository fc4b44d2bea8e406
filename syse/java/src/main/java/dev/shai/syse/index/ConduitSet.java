// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.index;

import java.util.BitSet;
import java.util.function.IntConsumer;

/** Numbers of conduits, as unsigned 32-bit integers; a bit each. Not safe for concurrent use. */
public final class ConduitSet {
    private final BitSet lower = new BitSet();
    private final BitSet upper = new BitSet(); // from 2^31 on

    /** Adds a number. */
    public void add(int conduit) {
        half(conduit).set(conduit & Integer.MAX_VALUE);
    }

    /** Removes a number. */
    public void remove(int conduit) {
        half(conduit).clear(conduit & Integer.MAX_VALUE);
    }

    /** Whether a number is in the set. */
    public boolean contains(int conduit) {
        return half(conduit).get(conduit & Integer.MAX_VALUE);
    }

    /** The numbers of this set that are not in another one, ascending. */
    public int[] without(ConduitSet other) {
        BitSet low = (BitSet) lower.clone();
        low.andNot(other.lower);
        BitSet high = (BitSet) upper.clone();
        high.andNot(other.upper);
        int[] numbers = new int[low.cardinality() + high.cardinality()];
        int[] count = {0};
        IntConsumer next = number -> numbers[count[0]++] = number;
        low.stream().forEach(next);
        high.stream().forEach(number -> next.accept(number | Integer.MIN_VALUE));
        return numbers;
    }

    private BitSet half(int conduit) {
        return conduit >= 0 ? lower : upper;
    }
}
