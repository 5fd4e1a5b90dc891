/*
 * `security_headers`: common security header fields, by a preset; and `hsts`: Strict-Transport-Security (RFC 6797).
 * Fields already in the response are kept.
 */
#include "http/exchange.h"
#include "server/module.h"

#include <errno.h>
#include <stddef.h>

enum preset { PRESET_OFF, PRESET_ON, PRESET_STRICT };

struct security_conf {
    int preset;      /* enum preset */
    struct str hsts; /* field value; empty: none */
};

static const char *const presets[] = {"off", "on", "strict", NULL};

static const struct {
    const char *name, *value;
    enum preset from;
} fields[] = {
    {"X-Content-Type-Options", "nosniff", PRESET_ON},
    {"X-Frame-Options", "SAMEORIGIN", PRESET_ON},
    {"Referrer-Policy", "strict-origin-when-cross-origin", PRESET_ON},
    {"Content-Security-Policy",
     "default-src 'self'; base-uri 'self'; object-src 'none'; frame-ancestors 'self'", PRESET_STRICT},
    {"Cross-Origin-Opener-Policy", "same-origin", PRESET_STRICT},
    {"Cross-Origin-Resource-Policy", "same-origin", PRESET_STRICT},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=()", PRESET_STRICT},
};

#define HINT STR("write: hsts: on, or hsts: 365d include_subdomains preload")

/* "on", "off", or a time, optionally with include_subdomains and preload. */
static int read_hsts(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct str *value = out;
    struct conf_words words;
    uint64_t age_ms = 365ull * 86400 * 1000;
    bool subdomains = false, preload = false;
    int error = conf_read_words(reader, node, &words);

    *value = STR("");
    if (error < 0 || (words.count == 1 && str_equal(words.items[0], STR("off"))))
        return error;
    if (words.count && !str_equal(words.items[0], STR("on"))) {
        struct conf_node word = conf_word_node(node, words.items[0]);

        error = conf_read_duration(reader, &word, &age_ms);
    }
    for (size_t i = 1; i < words.count && error == 0; i++) {
        bool of_names = str_equal(words.items[i], STR("include_subdomains"));

        subdomains |= of_names;
        preload |= str_equal(words.items[i], STR("preload"));
        if (of_names || str_equal(words.items[i], STR("preload")))
            continue;
        conf_error(reader->errors, node->mark, HINT, "hsts has no parameter \"" STR_FMT "\"",
                   STR_ARG(words.items[i]));
        error = -EINVAL;
    }
    if (error < 0)
        return error;
    *value = arena_printf(reader->arena, "max-age=%llu%s%s", (unsigned long long)(age_ms / 1000),
                          subdomains ? "; includeSubDomains" : "", preload ? "; preload" : "");
    return value->data ? 0 : -ENOMEM;
}

static const struct directive directives[] = {
    {.name = "security_headers",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .choices = presets,
     .offset = offsetof(struct security_conf, preset),
     .default_value = "off",
     .example = "security_headers: strict",
     .help = "A set of header fields for all responses, including errors: on sends nosniff, permits frames of the "
             "same origin only, and sends only the origin in Referer to other origins; strict adds a "
             "Content-Security-Policy that permits scripts, styles and images from the site itself only, and "
             "isolates the site from other origins. Fields that the response or add_header already has are not "
             "changed."},
    {.name = "hsts",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CUSTOM,
     .offset = offsetof(struct security_conf, hsts),
     .row_size = sizeof(struct str),
     .row = read_hsts,
     .syntax = "off | on | time [include_subdomains] [preload]",
     .example = "hsts: 365d include_subdomains",
     .help = "Browsers must use HTTPS only for this time (on: a year; 0 revokes it); sent over HTTPS only. It is "
             "hard to revoke: try a short time first.",
     .schema = "{\"type\": [\"string\", \"boolean\", \"integer\"]}"},
    {0},
};

static int add_if_absent(struct exchange *x, struct str name, struct str value)
{
    if (headers_find(&x->response.headers, name))
        return 0;
    return headers_add(&x->response.headers, &x->arena, name, value);
}

static int security_filter(struct exchange *x, const void *conf)
{
    const struct security_conf *own = conf;
    int error = 0;

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && error == 0; i++) {
        if (own->preset >= (int)fields[i].from)
            error = add_if_absent(x, str_from(fields[i].name), str_from(fields[i].value));
    }
    if (error == 0 && own->hsts.length && exchange_is_secure(x))
        error = add_if_absent(x, STR("Strict-Transport-Security"), own->hsts);
    return error;
}

static bool security_idle(const void *conf)
{
    const struct security_conf *own = conf;

    return own->preset == 0 && str_empty(own->hsts);
}

const struct module module_security_headers = {
    .name = "security_headers",
    .directives = directives,
    .conf_size = sizeof(struct security_conf),
    .idle = security_idle,
    .filter = security_filter,
};
