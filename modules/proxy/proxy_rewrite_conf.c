/*
 * Reads and checks the rows of proxy_redirect and proxy_cookie_... .
 */
#include "proxy.h"

#include <errno.h>

static int reject_row(struct conf_reader *reader, const struct conf_node *node, struct str hint,
                      const char *what)
{
    conf_error(reader->errors, node->mark, hint, "%s", what);
    return -EINVAL;
}

static int read_pair(struct conf_reader *reader, const struct conf_node *node, const struct conf_words *words,
                     struct proxy_rewrite *row)
{
    int error = 0;

    if (str_starts(words->items[0], STR("~")))
        return reject_row(reader, node, STR("write its prefix"),
                          "regular expressions are not supported here");
    row->kind = REWRITE_PAIR;
    error = conf_read_template_word(reader, node, words->items[0], &row->from);
    return error < 0 ? error : conf_read_template_word(reader, node, words->items[1], &row->to);
}

int proxy_read_redirect(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct proxy_rewrite *row = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count == 2)
        return read_pair(reader, node, &words, row);
    if (words.count == 1 && str_equal(words.items[0], STR("off")))
        row->kind = REWRITE_OFF;
    else if (words.count == 1 && str_equal(words.items[0], STR("default")))
        row->kind = REWRITE_DEFAULT;
    else
        return reject_row(reader, node, STR("write: proxy_redirect: [default, http://backend:8000/ /]"),
                          "proxy_redirect takes off, default, or a prefix and its replacement");
    return 0;
}

int proxy_read_cookie_pair(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct proxy_rewrite *row = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count == 2)
        return read_pair(reader, node, &words, row);
    row->kind = REWRITE_OFF;
    if (words.count == 1 && str_equal(words.items[0], STR("off")))
        return 0;
    return reject_row(reader, node, STR("write: proxy_cookie_path: /one/ /"),
                      "the directive takes off, or a text and its replacement");
}

static bool set_flag(struct proxy_flags *row, struct str word)
{
    static const struct {
        const char *word;
        int secure, http_only;
        enum proxy_same_site same_site;
    } flags[] = {
        {"secure", 1, 0, SAME_SITE_KEEP},
        {"nosecure", -1, 0, SAME_SITE_KEEP},
        {"httponly", 0, 1, SAME_SITE_KEEP},
        {"nohttponly", 0, -1, SAME_SITE_KEEP},
        {"samesite=none", 0, 0, SAME_SITE_NONE},
        {"samesite=lax", 0, 0, SAME_SITE_LAX},
        {"samesite=strict", 0, 0, SAME_SITE_STRICT},
        {"nosamesite", 0, 0, SAME_SITE_DROP},
    };

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (!str_equal_nocase(word, str_from(flags[i].word)))
            continue;
        row->secure = flags[i].secure ? flags[i].secure : row->secure;
        row->http_only = flags[i].http_only ? flags[i].http_only : row->http_only;
        row->same_site = flags[i].same_site ? flags[i].same_site : row->same_site;
        return true;
    }
    return false;
}

int proxy_read_cookie_flags(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct proxy_flags *row = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count == 1 && str_equal(words.items[0], STR("off")))
        return 0;
    if (words.count < 2 || str_starts(words.items[0], STR("~")))
        return reject_row(reader, node,
                          STR("write: proxy_cookie_flags: session secure httponly samesite=lax"),
                          "proxy_cookie_flags takes off, or the name of a cookie and its flags");
    row->cookie = words.items[0];
    for (size_t i = 1; i < words.count; i++) {
        if (!set_flag(row, words.items[i]))
            return reject_row(
                reader, node,
                STR("secure, httponly, samesite=strict, =lax, =none, and each with the prefix no"),
                "this is not a cookie flag");
    }
    return 0;
}
