/* SPDX-License-Identifier: BSD-2-Clause
 *
 * UTF-8 (RFC 3629), strictly: overlong forms, surrogates and values above
 * U+10FFFF are invalid.
 */
#ifndef SYSE_UTF8_H
#define SYSE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, replaces invalid bytes */

/*
 * Decodes one character at s. Returns its length in bytes (1..4), or 0 if the bytes
 * are not a character.
 */
size_t utf8_decode(const char *s, size_t size, uint32_t *character);

bool utf8_valid(const char *s, size_t size);

/*
 * Returns the lower-case form of a character, for comparisons without regard to case:
 * Latin, Greek and Cyrillic letters that have a one-to-one form. Other characters are
 * returned unchanged.
 */
uint32_t utf8_fold(uint32_t character);

/*
 * Reports whether the character is part of a word: letters and digits of any script,
 * but not punctuation.
 */
bool utf8_in_word(uint32_t character);

/* Returns the largest offset <= at that begins a character. */
size_t utf8_floor(const char *s, size_t at);

#endif
