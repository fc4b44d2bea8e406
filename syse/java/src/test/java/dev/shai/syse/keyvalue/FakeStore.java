// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.keyvalue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;

/** Stands in for Redis: records commands and gives prepared answers, "+OK" when there are none. */
public final class FakeStore implements AutoCloseable {
    private final ServerSocketChannel server;
    private final Thread thread = new Thread(this::serve, "fake store");
    private final List<String> commands = new CopyOnWriteArrayList<>();
    private final ConcurrentLinkedQueue<String> answers = new ConcurrentLinkedQueue<>();

    public FakeStore(Path socket) throws IOException {
        server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(UnixDomainSocketAddress.of(socket));
        thread.start();
    }

    public void answer(String... prepared) {
        answers.addAll(List.of(prepared));
    }

    /** The commands so far, their words separated by spaces. */
    public List<String> commands() {
        return List.copyOf(commands);
    }

    private void serve() {
        try (SocketChannel client = server.accept();
                BufferedReader lines =
                        new BufferedReader(
                                new InputStreamReader(
                                        Channels.newInputStream(client), StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                List<String> words = new ArrayList<>();
                for (int left = Integer.parseInt(line.substring(1)); left > 0; left--) {
                    lines.readLine(); // the length
                    words.add(lines.readLine());
                }
                commands.add(String.join(" ", words));
                String answer = answers.isEmpty() ? "+OK\r\n" : answers.poll();
                client.write(ByteBuffer.wrap(answer.getBytes(StandardCharsets.UTF_8)));
            }
        } catch (IOException closed) {
            // The test is over.
        }
    }

    @Override
    public void close() throws IOException {
        server.close();
        try {
            thread.join();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
