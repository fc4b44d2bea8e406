// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.shai.syse.engine.Fault;
import dev.shai.syse.index.IndexingFault;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;

/** What users are told of faults: by the programs, and by the page. */
class FaultOptionTest {
    private static final Path PAGE = Path.of("..", "..", "docs", "enforcement.md");

    private static Stream<Arguments> faults() {
        return Stream.concat(
                arguments(Fault.values(), new SearchEngine(), "--index", "i", "--queries", "q"),
                arguments(
                        IndexingFault.values(), new Indexer(), "--index", "i", "--documents", "d"));
    }

    private static Stream<Arguments> arguments(
            Enum<?>[] faults, Object program, String... required) {
        return Stream.of(faults).map(fault -> Arguments.of(fault, program, required));
    }

    @ParameterizedTest
    @MethodSource("faults")
    void everyFaultIsOfferedAndRead(Enum<?> fault, Object program, String[] required) {
        CommandLine line = new CommandLine(program).setCaseInsensitiveEnumValuesAllowed(true);
        String usage = line.getUsageMessage();
        assertTrue(List.of(usage.split("[\\s,.]+")).contains(fault.toString()), usage);
        line.parseArgs(required);
        assertEquals("none", line.getCommandSpec().findOption("--fault").getValue().toString());
        line.parseArgs(
                Stream.concat(Stream.of(required), Stream.of("--fault", fault.toString()))
                        .toArray(String[]::new));
        assertEquals(fault, line.getCommandSpec().findOption("--fault").getValue());
    }

    @ParameterizedTest
    @MethodSource("faults")
    void everyFaultIsDocumented(Enum<?> fault) throws IOException {
        assertTrue(
                Files.readString(PAGE).contains("`" + fault + "`"),
                PAGE + ": describe " + fault + " under \"Faults to try\"");
    }
}
