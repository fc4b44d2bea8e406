/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Data that the zygote loads once and every worker shares: the page and the
 * advertisements.
 */
#ifndef SYSE_ASSETS_H
#define SYSE_ASSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASSETS_FILE_MAX (64 * 1024) /* the page fits into an answer */
#define ASSETS_POLICY_MAX 512

struct assets {
	char *page; /* HTML with the pipeline's name, exactly one <style> and one <script> */
	size_t page_length;
	const char *style; /* content of the page's style element, used by all HTML answers */
	size_t style_length;
	/* Content-Security-Policy that allows exactly this style and this script. */
	char content_policy[ASSETS_POLICY_MAX];
	char *advertisement_text;
	const char **advertisement;
	size_t advertisement_count; /* at least 1 */
};

/* Where the files are, and the pipeline whose page it is. */
struct asset_sources {
	const char *page;
	const char *advertisements;
	const char *pipeline; /* its name, which the page's logins sign */
};

/*
 * Loads the page and the advertisements (one per line; empty lines and lines that
 * begin with "#" are skipped). Returns false with the reason: the file, what is wrong
 * with it, and what is expected.
 */
bool assets_load(
    struct assets *assets, const struct asset_sources *sources, char *reason, size_t reason_size);

void assets_release(struct assets *assets);

/* Returns the advertisement for a query, always the same one for the same text. */
const char *assets_advertisement(const struct assets *assets, const char *query, size_t size);

#endif
