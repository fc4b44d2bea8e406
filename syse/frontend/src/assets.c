/* SPDX-License-Identifier: BSD-2-Clause */
#include "assets.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

#define PIPELINE_PLACE "<meta name=\"pipeline\" content=\""
#define PIPELINE_MAX 63

/* Returns the content of the only element of this name, or NULL. */
static const char *
find_element(const char *page, const char *open, const char *close, size_t *length)
{
	const char *start = strstr(page, open);
	const char *end;

	if (start == NULL || strstr(start + 1, open) != NULL)
		return NULL;
	start += strlen(open);
	end = strstr(start, close);
	if (end == NULL)
		return NULL;
	*length = (size_t)(end - start);
	return start;
}

/* Writes the base64 form of the SHA-256 of the data, as a content policy needs it. */
static void
digest(const char *data, size_t size, char out[64])
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(hash, (const unsigned char *)data, size);
	sodium_bin2base64(out, 64, hash, sizeof hash, sodium_base64_VARIANT_ORIGINAL);
}

/*
 * Writes the pipeline's name into the page, whose script signs it. Returns NULL, or what is
 * wrong.
 */
static const char *
insert_pipeline(struct assets *assets, const char *pipeline)
{
	size_t length = strlen(pipeline);
	char *place = strstr(assets->page, PIPELINE_PLACE);

	if (length == 0 || length > PIPELINE_MAX ||
	    strspn(pipeline, "abcdefghijklmnopqrstuvwxyz0123456789-") != length)
		return "--pipeline is not the name of a pipeline";
	if (place == NULL)
		return "the page has no place for the pipeline's name: " PIPELINE_PLACE "\">";
	place += sizeof PIPELINE_PLACE - 1;
	memmove(place + length, place, strlen(place) + 1);
	memcpy(place, pipeline, length);
	assets->page_length += length;
	return NULL;
}

static bool
load_page(
    struct assets *assets, const struct asset_sources *sources, char *reason, size_t reason_size)
{
	char style_digest[64], script_digest[64];
	const char *path = sources->page, *script, *wrong;
	size_t script_length;

	assets->page = file_read(path, PIPELINE_MAX, &assets->page_length, reason, reason_size);
	if (assets->page == NULL)
		return false;
	wrong = insert_pipeline(assets, sources->pipeline);
	if (wrong != NULL) {
		snprintf(reason, reason_size, "read %s: %s", path, wrong);
		return false;
	}
	assets->style = find_element(assets->page, "<style>", "</style>", &assets->style_length);
	script = find_element(assets->page, "<script>", "</script>", &script_length);
	if (assets->style == NULL || script == NULL) {
		snprintf(reason, reason_size,
		    "read %s: the page needs exactly one <style> and one <script>, "
		    "without attributes, for its content policy",
		    path);
		return false;
	}
	digest(assets->style, assets->style_length, style_digest);
	digest(script, script_length, script_digest);
	snprintf(assets->content_policy, sizeof assets->content_policy,
	    "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src "
	    "'self'; img-src "
	    "data:; "
	    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	    script_digest, style_digest);
	return true;
}

bool
assets_load(
    struct assets *assets, const struct asset_sources *sources, char *reason, size_t reason_size)
{
	memset(assets, 0, sizeof *assets);
	if (load_page(assets, sources, reason, reason_size) &&
	    (sources->advertisements == NULL ||
		advertisements_load(
		    &assets->advertisements, sources->advertisements, reason, reason_size)) &&
	    (sources->topics == NULL ||
		topics_load(&assets->topics, sources->topics, reason, reason_size)))
		return true;
	assets_release(assets);
	return false;
}

void
assets_release(struct assets *assets)
{
	free(assets->page);
	advertisements_release(&assets->advertisements);
	topics_release(&assets->topics);
	memset(assets, 0, sizeof *assets);
}
