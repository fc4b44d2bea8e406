// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.engine;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Writes {@code struct shai_transfer} records (runtime/include/shai_wire.h) to a descriptor
 * channel, each with a single write(2), as the channel demands. Not for several threads.
 */
final class TransferWriter implements Closeable {
    private static final int HEADER_BYTES = 8;

    private final FileChannel channel;
    private final ByteBuffer record =
            ByteBuffer.allocateDirect(HEADER_BYTES + Hits.LIMIT * Integer.BYTES)
                    .order(ByteOrder.LITTLE_ENDIAN);

    /** Opens the channel, which exists. */
    TransferWriter(Path path) throws IOException {
        channel = FileChannel.open(path, StandardOpenOption.WRITE);
    }

    /** Answers a query. */
    void write(int query, Hits hits) throws IOException {
        record.clear();
        record.putInt(query).putInt(0);
        if (hits.text() != null) {
            record.put(hits.text(), 0, Math.min(hits.text().length, record.remaining()));
        } else {
            for (int i = 0; i < hits.count() && i < Hits.LIMIT; i++) {
                record.putInt(hits.conduits()[i]);
            }
        }
        record.flip();
        int size = record.remaining();
        int written = channel.write(record);
        if (written != size) {
            throw new IOException("a record of " + size + " bytes was cut to " + written);
        }
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
