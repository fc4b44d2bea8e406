// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import dev.shai.syse.document.Visibility;
import dev.shai.syse.index.IndexFields;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.BoostQuery;
import org.apache.lucene.search.MatchNoDocsQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermInSetQuery;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.util.BytesRef;

/**
 * Turns requests into Lucene queries: every word has to occur in title or body, and the document
 * has to be public, the user's own, or friends-only of one of the user's friends.
 *
 * <p>This restriction avoids fetching documents that would be withheld anyway. It protects nothing:
 * see the faulty variants in {@link FaultyQueries}.
 */
class RestrictedQueries {
    private static final int WORDS_LIMIT = 16;
    private static final float TITLE_BOOST = 3;

    private record Restriction(String user, List<String> friends, Query query) {}

    private final Analyzer analyzer = IndexFields.analyzer();
    // A slot's thread serves one user for a whole session; a restriction to a hundred friends is
    // worth keeping, also because Lucene caches what equal restrictions match.
    private final ThreadLocal<Restriction> last = new ThreadLocal<>();

    /** The Lucene query for a request. */
    Query query(SearchRequest request) {
        return new BooleanQuery.Builder()
                .add(text(request.text()), Occur.MUST)
                .add(restriction(request), Occur.FILTER)
                .build();
    }

    /** What matches the text alone; nothing when there is no word in it. */
    final Query text(String text) {
        Set<String> words = words(text);
        if (words.isEmpty()) {
            return new MatchNoDocsQuery("no words");
        }
        BooleanQuery.Builder all = new BooleanQuery.Builder();
        for (String word : words) {
            Query inTitle = new TermQuery(new Term(IndexFields.TITLE, word));
            Query inBody = new TermQuery(new Term(IndexFields.BODY, word));
            all.add(
                    new BooleanQuery.Builder()
                            .add(new BoostQuery(inTitle, TITLE_BOOST), Occur.SHOULD)
                            .add(inBody, Occur.SHOULD)
                            .build(),
                    Occur.MUST);
        }
        return all.build();
    }

    private Set<String> words(String text) {
        Set<String> words = new LinkedHashSet<>();
        try (TokenStream tokens = analyzer.tokenStream(IndexFields.BODY, text)) {
            CharTermAttribute token = tokens.addAttribute(CharTermAttribute.class);
            tokens.reset();
            while (words.size() < WORDS_LIMIT && tokens.incrementToken()) {
                words.add(token.toString());
            }
            return words;
        } catch (IOException impossible) {
            throw new UncheckedIOException("reading from a string", impossible);
        }
    }

    private Query restriction(SearchRequest request) {
        Restriction known = last.get();
        if (known != null
                && known.user().equals(request.user())
                && known.friends().equals(request.friends())) {
            return known.query();
        }
        Query restriction =
                new BooleanQuery.Builder()
                        .add(visible(Visibility.PUBLIC), Occur.SHOULD)
                        .add(owned(List.of(request.user())), Occur.SHOULD)
                        .add(
                                new BooleanQuery.Builder()
                                        .add(visible(Visibility.FRIENDS), Occur.FILTER)
                                        .add(owned(request.friends()), Occur.FILTER)
                                        .build(),
                                Occur.SHOULD)
                        .build();
        last.set(new Restriction(request.user(), request.friends(), restriction));
        return restriction;
    }

    /** Documents of that visibility. */
    static Query visible(Visibility visibility) {
        return new TermQuery(new Term(IndexFields.VISIBILITY, visibility.label()));
    }

    /** Documents of any of these owners. */
    static Query owned(List<String> owners) {
        List<BytesRef> terms = new ArrayList<>(owners.size());
        owners.forEach(owner -> terms.add(new BytesRef(owner)));
        return new TermInSetQuery(IndexFields.OWNER, terms);
    }
}
