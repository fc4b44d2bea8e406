/* SPDX-License-Identifier: BSD-2-Clause */
#include "assets.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

#define PIPELINE_PLACE "<meta name=\"pipeline\" content=\""
#define PIPELINE_MAX 63

/* Reads a whole file, NUL-terminated. Returns NULL with the reason. */
static char *
read_file(const char *path, size_t *size, char *reason, size_t reason_size)
{
	FILE *file = fopen(path, "re");
	char *data, *shrunk;

	if (file == NULL) {
		snprintf(reason, reason_size, "read %s: %s", path, strerror(errno));
		return NULL;
	}
	data = malloc(ASSETS_FILE_MAX + PIPELINE_MAX + 1);
	if (data == NULL) {
		snprintf(reason, reason_size, "read %s: out of memory", path);
		fclose(file);
		return NULL;
	}
	*size = fread(data, 1, ASSETS_FILE_MAX + 1, file);
	if (ferror(file) || *size > ASSETS_FILE_MAX || memchr(data, '\0', *size) ||
	    !utf8_valid(data, *size)) {
		snprintf(reason, reason_size, "read %s: it must be UTF-8 text of at most %d bytes",
		    path, ASSETS_FILE_MAX);
		fclose(file);
		free(data);
		return NULL;
	}
	fclose(file);
	data[*size] = '\0';
	/* What is not used would be restored between sessions. */
	shrunk = realloc(data, *size + PIPELINE_MAX + 1);
	return shrunk != NULL ? shrunk : data;
}

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

	assets->page = read_file(path, &assets->page_length, reason, reason_size);
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

static size_t
count_lines(const char *text)
{
	size_t lines = 1;

	for (; *text != '\0'; text++)
		lines += *text == '\n';
	return lines;
}

static bool
load_advertisements(struct assets *assets, const char *path, char *reason, size_t reason_size)
{
	char *rest, *line;
	size_t size;

	assets->advertisement_text = read_file(path, &size, reason, reason_size);
	if (assets->advertisement_text == NULL)
		return false;
	assets->advertisement =
	    calloc(count_lines(assets->advertisement_text), sizeof *assets->advertisement);
	if (assets->advertisement == NULL) {
		snprintf(reason, reason_size, "read %s: out of memory", path);
		return false;
	}
	for (line = strtok_r(assets->advertisement_text, "\r\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\r\n", &rest))
		if (line[0] != '#')
			assets->advertisement[assets->advertisement_count++] = line;
	if (assets->advertisement_count == 0) {
		snprintf(reason, reason_size,
		    "read %s: it contains no advertisement; expected one per line", path);
		return false;
	}
	return true;
}

bool
assets_load(
    struct assets *assets, const struct asset_sources *sources, char *reason, size_t reason_size)
{
	memset(assets, 0, sizeof *assets);
	if (load_page(assets, sources, reason, reason_size) &&
	    load_advertisements(assets, sources->advertisements, reason, reason_size))
		return true;
	assets_release(assets);
	return false;
}

void
assets_release(struct assets *assets)
{
	free(assets->page);
	free(assets->advertisement_text);
	free(assets->advertisement);
	memset(assets, 0, sizeof *assets);
}

const char *
assets_advertisement(const struct assets *assets, const char *query, size_t size)
{
	uint64_t hash = 0xCBF29CE484222325; /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)query[i]) * 0x100000001B3;
	return assets->advertisement[hash % assets->advertisement_count];
}
