// SPDX-License-Identifier: BSD-2-Clause
package dev.shai.syse.corpus;

/**
 * A text without an owner yet.
 *
 * @param title one line
 * @param text any number of lines
 */
record Document(String title, String text) {}
