// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DemoKeysTest {
    /** RFC 8032, section 7.1: tests 1, 2, 3 and "1024"; secret key, public key. */
    @ParameterizedTest
    @CsvSource({
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60,"
                + "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb,"
                + "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7,"
                + "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "f5e5767cf153319517630f226876b86c8160cc583bc013744c6bf255f5cc0ee5,"
                + "278117fc144c72340f67d0f2316e8386ceffbf2b2428c9c51fef7c597f1d426e"
    })
    void derivesPublicKeysAsTheRfcDoes(String seed, String publicKey) {
        byte[] derived = DemoKeys.publicKey(HexFormat.of().parseHex(seed));
        assertEquals(publicKey, HexFormat.of().formatHex(derived));
    }

    @Test
    void seedsAreTheHashThatIsDocumented() throws Exception {
        byte[] text = "shai-demo-key\n42\nalice".getBytes(StandardCharsets.UTF_8);
        assertArrayEquals(
                MessageDigest.getInstance("SHA-256").digest(text), new DemoKeys(42).seed("alice"));
    }
}
