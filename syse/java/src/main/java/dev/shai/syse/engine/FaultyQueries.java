// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import dev.shai.syse.document.Visibility;
import dev.shai.syse.index.IndexFields;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;

/** Queries whose restriction is broken in one of the ways of {@link Fault}. */
final class FaultyQueries extends RestrictedQueries {
    private final Fault fault;

    FaultyQueries(Fault fault) {
        this.fault = fault;
    }

    @Override
    Query query(SearchRequest request) {
        BooleanQuery.Builder query =
                new BooleanQuery.Builder().add(text(request.text()), Occur.MUST);
        switch (fault) {
            case NONE -> {
                return super.query(request);
            }
            case CASE_CONFUSION -> query.add(samePublicInitial(), Occur.FILTER);
            case WRONG_TOKENISATION -> {
                query.add(bodyWord("visibility"), Occur.SHOULD);
                query.add(bodyWord(Visibility.PUBLIC.label()), Occur.SHOULD);
            }
            case SPECIAL_CHARACTERS ->
                    query.add(new MatchAllDocsQuery(), Occur.FILTER)
                            .add(owned(List.of(request.user())), Occur.MUST_NOT);
            case QUERY_EXPANSION -> query.add(expandedUser(request), Occur.FILTER);
            case KEYWORD_FILTER -> query.add(bodyWord(Visibility.PRIVATE.label()), Occur.MUST_NOT);
            case IGNORE_ATTRIBUTES, PREMATURE_END, TEXT_INSTEAD_OF_IDS -> {}
        }
        return query.build();
    }

    private static Query samePublicInitial() {
        String initial = Visibility.PUBLIC.label().substring(0, 1).toLowerCase(Locale.ROOT);
        return new PrefixQuery(new Term(IndexFields.VISIBILITY, initial));
    }

    private static Query bodyWord(String word) {
        return new TermQuery(new Term(IndexFields.BODY, word));
    }

    private static Query expandedUser(SearchRequest request) {
        List<String> users = new ArrayList<>(request.friends());
        users.add(request.user());
        return new BooleanQuery.Builder()
                .add(visible(Visibility.PUBLIC), Occur.SHOULD)
                .add(owned(users), Occur.SHOULD)
                .build();
    }
}
