/*
 * `sticky`: "cookie srv_id expires=1h path=/ httponly", or a map of the same words.
 */
#include "upstream/upstream_conf.h"

#include <errno.h>
#include <stddef.h>

#define HINT STR("write: sticky: cookie srv_id expires=1h path=/ httponly, or {cookie: srv_id, expires: 1h, path: /}")

struct sticky_words {
    struct str cookie, domain, path;
    uint64_t expires_ms;
    int samesite;
    bool httponly, secure;
};

#define IN(field) offsetof(struct sticky_words, field)

static const char *const sites[] = {"", "strict", "lax", "none", NULL};
static const char *const attributes[] = {"", "; SameSite=Strict", "; SameSite=Lax", "; SameSite=None"};

static const struct directive keys[] = {
    {.name = "cookie", .type = DIRECTIVE_TEXT, .offset = IN(cookie), .help = "The name of the cookie."},
    {.name = "expires",
     .type = DIRECTIVE_DURATION,
     .offset = IN(expires_ms),
     .help = "How long a browser keeps the cookie; default: until it is closed."},
    {.name = "domain", .type = DIRECTIVE_TEXT, .offset = IN(domain), .help = "The Domain attribute."},
    {.name = "path", .type = DIRECTIVE_TEXT, .offset = IN(path), .help = "The Path attribute."},
    {.name = "httponly",
     .type = DIRECTIVE_SWITCH,
     .offset = IN(httponly),
     .default_value = "off",
     .help = "Adds HttpOnly: scripts cannot read the cookie."},
    {.name = "secure", .type = DIRECTIVE_SWITCH, .offset = IN(secure), .default_value = "off", .help = "Adds Secure: "
                                                                                                  "HTTPS only."},
    {.name = "samesite", .type = DIRECTIVE_CHOICE, .offset = IN(samesite), .choices = sites, .help = "The SameSite "
                                                                                                     "attribute."},
    {0},
};

/* False for bytes that would end the value or the line. */
static bool is_cookie_text(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if (c <= ' ' || c >= 0x7f || c == ';' || c == ',' || c == '"')
            return false;
    }
    return true;
}

/* True for a name that can be a variable name. */
static bool is_variable_name(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = str_lower(text.data[i]);

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
            return false;
    }
    return text.length > 0;
}

static int read_sticky_words(struct conf_reader *reader, const struct conf_node *node, struct sticky_words *out)
{
    struct conf_words words;
    struct conf_node map;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count < 2 || !str_equal(words.items[0], STR("cookie"))) {
        conf_error(reader->errors, node->mark, HINT, "sticky takes the word cookie and a name");
        return -EINVAL;
    }
    words.items++;
    words.count--;
    error = upstream_words_to_map(reader, node, &words, "cookie", &map);
    return error < 0 ? error : conf_read_block(reader, &map, keys, out);
}

static int set_sticky(struct conf_reader *reader, const struct sticky_words *words, struct upstream_sticky *sticky)
{
    struct str age = words->expires_ms ? arena_printf(reader->arena, "; Max-Age=%llu",
                                                      (unsigned long long)(words->expires_ms / 1000))
                                       : STR("");

    sticky->cookie = words->cookie;
    sticky->attributes = arena_printf(
        reader->arena, STR_FMT "%s" STR_FMT "%s" STR_FMT "%s%s%s", STR_ARG(age),
        words->domain.length ? "; Domain=" : "", STR_ARG(words->domain), words->path.length ? "; Path=" : "",
        STR_ARG(words->path), words->httponly ? "; HttpOnly" : "", words->secure ? "; Secure" : "",
        attributes[words->samesite]);
    return age.data && sticky->attributes.data ? 0 : -ENOMEM;
}

int upstream_read_sticky(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct upstream_sticky *sticky = out;
    struct sticky_words words = {0};
    struct str variable;
    int error =
        node->kind == CONF_MAP ? conf_read_block(reader, node, keys, &words) : read_sticky_words(reader, node, &words);

    if (error < 0)
        return error;
    if (!is_variable_name(words.cookie) || !is_cookie_text(words.domain) || !is_cookie_text(words.path)) {
        conf_error(reader->errors, node->mark, HINT,
                   "the name of a cookie must consist of letters, digits and underscores, and its attributes must be "
                   "plain text");
        return -EINVAL;
    }
    variable = arena_printf(reader->arena, "$cookie_" STR_FMT, STR_ARG(words.cookie));
    if (!variable.data)
        return -ENOMEM;
    error = conf_read_template_word(reader, node, variable, &sticky->route);
    return error < 0 ? error : set_sticky(reader, &words, sticky);
}
