/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Data that the zygote loads once and every worker shares: the page, the advertisements and the
 * topics.
 */
#ifndef SYSE_ASSETS_H
#define SYSE_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

#include "advertisements.h"
#include "topics.h"

#define ASSETS_POLICY_MAX 512

struct assets {
	char *page; /* HTML with the pipeline's name, exactly one <style> and one <script> */
	size_t page_length;
	const char *style; /* content of the page's style element, used by all HTML answers */
	size_t style_length;
	/* Content-Security-Policy that allows exactly this style and this script. */
	char content_policy[ASSETS_POLICY_MAX];
	struct advertisements advertisements; /* empty if the service has none */
	struct topics topics;                 /* empty if the service has none */
};

/* Where the files are, and the pipeline whose page it is. */
struct asset_sources {
	const char *page;
	const char *advertisements; /* NULL: none */
	const char *topics;         /* NULL: none */
	const char *pipeline;       /* its name, which the page's logins sign */
};

/*
 * Loads the page, and the advertisements and topics if there are any. Returns false with the
 * reason: the file, what is wrong with it, and what is expected.
 */
bool assets_load(
    struct assets *assets, const struct asset_sources *sources, char *reason, size_t reason_size);

void assets_release(struct assets *assets);

#endif
