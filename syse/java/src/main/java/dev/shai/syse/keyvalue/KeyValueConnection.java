// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.keyvalue;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A connection to a Redis or Valkey server on a Unix socket, speaking RESP2. Commands are buffered
 * by {@link #send} and go out when an answer is wanted, so that many share a round trip. Not for
 * several threads.
 */
public final class KeyValueConnection implements Closeable {
    private static final int FLUSH_BYTES = 1 << 16;
    private static final int MOST_BYTES = 64 << 20;

    private final SocketChannel channel;
    private final InputStream answers;
    private final ByteArrayOutputStream pending = new ByteArrayOutputStream();

    /** Connects. */
    public KeyValueConnection(Path socket) throws IOException {
        channel = SocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            channel.connect(UnixDomainSocketAddress.of(socket));
        } catch (IOException failure) {
            channel.close();
            throw new IOException(
                    "cannot connect to the key-value store at "
                            + socket
                            + ": "
                            + failure.getMessage()
                            + "; is it running?",
                    failure);
        }
        answers = new BufferedInputStream(Channels.newInputStream(channel));
    }

    /** Queues a command. Exactly one {@link #receive} must follow for each, in order. */
    public void send(String... words) throws IOException {
        append("*" + words.length + "\r\n");
        for (String word : words) {
            byte[] bytes = word.getBytes(StandardCharsets.UTF_8);
            append("$" + bytes.length + "\r\n");
            pending.writeBytes(bytes);
            append("\r\n");
        }
        if (pending.size() >= FLUSH_BYTES) {
            flush();
        }
    }

    private void append(String text) {
        pending.writeBytes(text.getBytes(StandardCharsets.US_ASCII));
    }

    private void flush() throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(pending.toByteArray());
        while (bytes.hasRemaining()) {
            channel.write(bytes);
        }
        pending.reset();
    }

    /**
     * Waits for an answer.
     *
     * @return its strings: one for a status, number or string, none for nil, all for a flat array
     * @throws IOException also for an error that the server answered
     */
    public List<String> receive() throws IOException {
        flush();
        List<String> strings = new ArrayList<>();
        receiveInto(strings);
        return strings;
    }

    private void receiveInto(List<String> strings) throws IOException {
        String line = readLine();
        String rest = line.substring(1);
        switch (line.charAt(0)) {
            case '+', ':' -> strings.add(rest);
            case '-' -> throw new IOException("the key-value store refused: " + rest);
            case '$' -> {
                int length = Integer.parseInt(rest);
                if (length >= 0) {
                    strings.add(readText(length));
                }
            }
            case '*' -> {
                for (int left = Integer.parseInt(rest); left > 0; left--) {
                    receiveInto(strings);
                }
            }
            default -> throw new IOException("not an answer of a key-value store: " + line);
        }
    }

    private String readLine() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = answers.read(); next != '\n'; next = answers.read()) {
            if (next < 0) {
                throw new EOFException("the key-value store closed the connection");
            }
            line.append((char) next);
        }
        if (line.length() < 2) {
            throw new IOException("not an answer of a key-value store: an empty line");
        }
        return line.substring(0, line.length() - 1);
    }

    private String readText(int length) throws IOException {
        if (length > MOST_BYTES) {
            throw new IOException("the key-value store answered with " + length + " bytes");
        }
        byte[] bytes = answers.readNBytes(length + 2);
        if (bytes.length < length + 2) {
            throw new EOFException("the key-value store closed the connection");
        }
        return new String(bytes, 0, length, StandardCharsets.UTF_8);
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
