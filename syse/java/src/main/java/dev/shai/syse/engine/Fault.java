// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.util.Locale;

/** Faults that can be injected into the search engine, to show that they are stopped later. */
public enum Fault {
    /** No fault. */
    NONE,
    /** Owner and visibility are ignored. */
    IGNORE_ATTRIBUTES,
    /** Visibilities are compared by their capital initial: Private passes for Public. */
    CASE_CONFUSION,
    /** "visibility:public" is split into two optional words of the query. */
    WRONG_TOKENISATION,
    /** The "-" that owns public documents is read as the operator "not" before the user's name. */
    SPECIAL_CHARACTERS,
    /** The user is replaced by the friends, who then count as the user. */
    QUERY_EXPANSION,
    /** Documents are kept out for the word "private" in their text, not for the attribute. */
    KEYWORD_FILTER,
    /** Attributes are checked only for the first part of the results. */
    PREMATURE_END,
    /** Titles are written to the channel instead of conduit numbers. */
    TEXT_INSTEAD_OF_IDS;

    /** The name on the command line, as in "case-confusion". */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
