// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.util.Locale;

/** What can be broken in the search engine on purpose, to see it stopped further on. */
public enum Fault {
    /** Nothing. */
    NONE,
    /** Owner and visibility are not looked at. */
    IGNORE_ATTRIBUTES,
    /** Visibilities are compared by their capital initial: Private passes for Public. */
    CASE_CONFUSION,
    /** "visibility:public" falls apart into two optional words of the query. */
    WRONG_TOKENISATION,
    /** The "-" that owns public documents is read as the operator "not" before the user's name. */
    SPECIAL_CHARACTERS,
    /** The user is expanded to the friends, who then are the user. */
    QUERY_EXPANSION,
    /** Documents are kept out for the word "private" in their text, not for the attribute. */
    KEYWORD_FILTER,
    /** Checking attributes ends before the list of results does. */
    PREMATURE_END,
    /** Titles are written to the channel instead of conduit numbers. */
    TEXT_INSTEAD_OF_IDS;

    /** The name on the command line, as in "case-confusion". */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
