/*
 * Accept and Connection: each line of the input is a field line. Weights are in thousandths, the members of Connection
 * are slices of the fields, and several field lines mean the same as one that joins them.
 */
#include "fuzz.h"

#include "http/accept.h"
#include "http/connection_options.h"

#include <errno.h>

static void check_options(const struct headers *fields, struct connection_options *options, int error)
{
    HOLDS(error == 0 || error == -E2BIG);
    if (error < 0)
        return;
    HOLDS(options->count <= LIMIT_CONNECTION_OPTIONS);
    for (unsigned i = 0; i < options->count; i++) {
        bool inside = false;

        for (unsigned j = 0; j < fields->count; j++)
            inside |= options->names[i].data >= fields->items[j].value.data &&
                      options->names[i].data + options->names[i].length <=
                          fields->items[j].value.data + fields->items[j].value.length;
        HOLDS(inside);
        HOLDS(connection_options_name(options, options->names[i]));
    }
}

static void check_joined(struct arena *arena, const struct headers *fields, const struct connection_options *options,
                         int error)
{
    static struct connection_options again;
    struct headers joined = {0};

    HOLDS(headers_copy(&joined, arena, fields) == 0);
    for (unsigned i = 0; i < 2; i++) {
        static const struct str names[] = {{"Accept", 6}, {"Connection", 10}};
        struct str value;

        HOLDS(headers_join(fields, str_equal_nocase, names[i], STR(", "), arena, &value) == 0);
        if (value.data)
            HOLDS(headers_set(&joined, arena, names[i], value) == 0);
    }
    HOLDS(accept_weight(&joined, STR("text/html")) == accept_weight(fields, STR("text/html")));
    HOLDS(connection_options_read(&joined, &again) == error);
    if (error == 0)
        HOLDS(again.close == options->close && again.keep_alive == options->keep_alive &&
              again.upgrade == options->upgrade && again.count == options->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct connection_options options;
    struct str rest = str_of((const char *)bytes, size);
    struct headers fields = {0};
    struct arena arena;
    bool quoted = str_find(rest, '"') >= 0; /* an open quoted string ends with its field line */
    int error;

    if (size > 2000)
        return 0;
    arena_init(&arena, NULL, 0);
    while (rest.data) {
        struct str line = str_cut(&rest, '\n');
        struct str name = str_starts(line, STR("A")) ? STR("Accept") : STR("Connection");

        HOLDS(headers_add(&fields, &arena, name, str_trim(str_skip(line, 1))) == 0);
    }
    HOLDS(accept_weight(&fields, STR("text/html")) <= 1000);
    error = connection_options_read(&fields, &options);
    check_options(&fields, &options, error);
    if (!quoted)
        check_joined(&arena, &fields, &options, error);
    arena_reset(&arena);
    return 0;
}
