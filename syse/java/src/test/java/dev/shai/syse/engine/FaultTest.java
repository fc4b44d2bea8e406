// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.shai.syse.document.DocumentHeader;
import dev.shai.syse.document.Visibility;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every fault must leak in the engine itself; otherwise stopping it later proves nothing. */
class FaultTest {
    private static final Set<Integer> ALICES_PRIVATE = Set.of(1, 2, 3);
    private static final SearchRequest BOBS =
            new SearchRequest(1, "bob", List.of("alice"), "cross", 10, false);

    @TempDir Path folder;

    @BeforeEach
    void buildIndex() throws IOException {
        Map<Integer, SearchedIndex.Entry> documents = new TreeMap<>();
        for (int conduit : ALICES_PRIVATE) {
            documents.put(conduit, entry("cross diary", "alice", Visibility.PRIVATE));
        }
        documents.put(4, entry("cross letter", "alice", Visibility.FRIENDS));
        documents.put(5, entry("cross note", "bob", Visibility.PRIVATE));
        documents.put(6, entry("cross stitch", DocumentHeader.NO_OWNER, Visibility.PUBLIC));
        documents.put(7, entry("cross words", DocumentHeader.NO_OWNER, Visibility.PUBLIC));
        documents.put(8, entry("cross carol", "carol", Visibility.FRIENDS));
        SearchedIndex.build(folder, 2, documents);
    }

    private static SearchedIndex.Entry entry(String title, String owner, Visibility visibility) {
        return new SearchedIndex.Entry(new DocumentHeader(title, owner, visibility), "some text");
    }

    private Set<Integer> bobFinds(Fault fault) throws IOException {
        return IntStream.of(SearchedIndex.search(folder, fault, BOBS).conduits())
                .boxed()
                .collect(Collectors.toSet());
    }

    @Test
    void withoutAFaultBobFindsWhatHeMaySee() throws IOException {
        assertEquals(Set.of(4, 5, 6, 7), bobFinds(Fault.NONE));
    }

    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"NONE", "TEXT_INSTEAD_OF_IDS"})
    void bobFindsAlicesPrivateDocuments(Fault fault) throws IOException {
        Set<Integer> found = bobFinds(fault);
        assertTrue(ALICES_PRIVATE.stream().anyMatch(found::contains), found.toString());
    }

    @Test
    void textOfAlicesPrivateDocumentsIsWrittenInsteadOfNumbers() throws IOException {
        Hits hits = SearchedIndex.search(folder, Fault.TEXT_INSTEAD_OF_IDS, BOBS);
        String text = new String(hits.text(), StandardCharsets.UTF_8);
        assertTrue(text.contains("cross diary"), text);
    }
}
