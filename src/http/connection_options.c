/*
 * Parses Connection in one pass. The callers decide which options take effect.
 */
#include "http/connection_options.h"

#include <errno.h>

static void add_option(struct connection_options *options, struct str option)
{
    if (str_equal_nocase(option, STR("close")))
        options->close = true;
    else if (str_equal_nocase(option, STR("keep-alive")))
        options->keep_alive = true;
    else if (str_equal_nocase(option, STR("upgrade")))
        options->upgrade = true;
    else
        options->names[options->count++] = option;
}

int connection_options_read(const struct headers *headers, struct connection_options *out_options)
{
    unsigned members = 0;
    struct header_list list;
    struct str member;

    out_options->close = out_options->keep_alive = out_options->upgrade = false;
    out_options->count = 0;
    header_list_start(&list, headers, STR("Connection"));
    while (header_list_next(&list, &member)) {
        if (++members > LIMIT_CONNECTION_OPTIONS)
            return -E2BIG;
        add_option(out_options, str_trim(str_cut(&member, ';')));
    }
    return 0;
}

bool connection_options_name(const struct connection_options *options, struct str name)
{
    for (unsigned i = 0; i < options->count; i++) {
        if (str_equal_nocase(name, options->names[i]))
            return true;
    }
    return false;
}
