/*
 * Constant parts of generated HTML pages. The build embeds page.css and filter.js with their hashes (embed.py).
 */
#include "server/page/page.h"

#include "server/page_text.h"

#define CONSTANT(text) {text, sizeof(text) - 1}
/* CSP Level 3 permits an inline element by the hash of its text. */
#define POLICY \
    "default-src 'none'; style-src 'sha256-" PAGE_CSS_HASH "'; base-uri 'none'; form-action 'none'; " \
    "frame-ancestors 'self'"

const struct str page_start = CONSTANT("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                                       "<meta name=\"viewport\" content=\"width=device-width\">\n"
                                       "<meta name=\"color-scheme\" content=\"light dark\">\n"
                                       "<style>" PAGE_CSS "</style>\n");
const struct str page_policy = CONSTANT(POLICY);
const struct str page_filter_script = CONSTANT("<script>" FILTER_JS "</script>\n");
const struct str page_filter_policy = CONSTANT(POLICY "; script-src 'sha256-" FILTER_JS_HASH "'");
