// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.FileSystemException;
import java.util.concurrent.Callable;
import picocli.CommandLine;

/** Start, failures and exit status of every program of Sys-E. */
final class Program {
    private Program() {}

    /**
     * Runs a command to its end.
     *
     * @return the exit status: what the command returned, 1 for a failure, 2 for wrong arguments
     */
    static int run(Callable<Integer> command, String... arguments) {
        return new CommandLine(command)
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setExecutionExceptionHandler(Program::report)
                .execute(arguments);
    }

    private static int report(
            Exception failure, CommandLine commandLine, CommandLine.ParseResult parsed)
            throws Exception {
        PrintWriter errors = commandLine.getErr();
        String name = commandLine.getCommandName();
        if (failure instanceof CommandFailure) {
            errors.println(name + ": " + failure.getMessage());
        } else if (failure instanceof FileSystemException file) {
            errors.println(name + ": " + file.getFile() + ": " + reason(file));
        } else if (failure instanceof IOException) {
            errors.println(name + ": " + failure.getMessage());
        } else {
            throw failure;
        }
        errors.flush();
        return CommandLine.ExitCode.SOFTWARE;
    }

    private static String reason(FileSystemException failure) {
        return failure.getReason() == null
                ? failure.getClass().getSimpleName().replace("Exception", "")
                : failure.getReason();
    }
}
