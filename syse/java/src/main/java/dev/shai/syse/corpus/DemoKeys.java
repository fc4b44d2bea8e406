// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.security.interfaces.EdECPublicKey;
import java.security.spec.EdECPoint;
import java.security.spec.NamedParameterSpec;

/**
 * Ed25519 login keys for the demo. They are derived from the corpus seed and the user's name, so
 * anybody can compute them: use them for a repeatable demo, never for real users.
 */
public final class DemoKeys {
    private static final String DOMAIN = "shai-demo-key\n";
    private static final int KEY_BYTES = 32;

    private final long corpusSeed;

    DemoKeys(long corpusSeed) {
        this.corpusSeed = corpusSeed;
    }

    /** The 32-byte Ed25519 seed (private key) of a user. */
    byte[] seed(String user) {
        try {
            byte[] text = (DOMAIN + corpusSeed + "\n" + user).getBytes(StandardCharsets.UTF_8);
            return MessageDigest.getInstance("SHA-256").digest(text);
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException("every JDK has SHA-256", impossible);
        }
    }

    /** The 32-byte public key (RFC 8032, section 5.1.5) of a 32-byte seed. */
    static byte[] publicKey(byte[] seed) {
        try {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("Ed25519");
            generator.initialize(NamedParameterSpec.ED25519, new FixedBytes(seed));
            EdECPublicKey key = (EdECPublicKey) generator.generateKeyPair().getPublic();
            return encode(key.getPoint());
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException("every JDK since 15 has Ed25519", impossible);
        }
    }

    /** RFC 8032, section 5.1.2: y little-endian, the lowest bit of x on top. */
    private static byte[] encode(EdECPoint point) {
        byte[] encoded = new byte[KEY_BYTES];
        BigInteger y = point.getY();
        for (int i = 0; i < KEY_BYTES; i++) {
            encoded[i] = y.shiftRight(8 * i).byteValue();
        }
        if (point.isXOdd()) {
            encoded[KEY_BYTES - 1] |= (byte) 0x80;
        }
        return encoded;
    }

    /**
     * Gives the JDK's generator, which draws exactly one seed, the seed to draw. The JDK has no
     * other public way from a private key to its public one.
     */
    private static final class FixedBytes extends SecureRandom {
        private static final long serialVersionUID = 1L;

        private final byte[] content;

        FixedBytes(byte[] content) {
            super(null, null); // no provider: nothing is ever seeded or generated
            this.content = content.clone();
        }

        @Override
        public void nextBytes(byte[] destination) {
            if (destination.length != content.length) {
                throw new IllegalStateException(
                        "Ed25519 draws "
                                + content.length
                                + " bytes; asked for "
                                + destination.length);
            }
            System.arraycopy(content, 0, destination, 0, destination.length);
        }
    }
}
