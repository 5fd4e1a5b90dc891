/* A reader of the sample directives. */
#ifndef TEST_SCHEMA_FIXTURE_H
#define TEST_SCHEMA_FIXTURE_H

#include "sample.h"

#include "../runner.h"

static struct arena arena;
static struct conf_errors errors;
static struct conf_reader reader;
static struct sample_values values;

static inline void set_up(void)
{
    arena_init(&arena, NULL, 0);
    errors = (struct conf_errors){.arena = &arena};
    reader = (struct conf_reader){.arena = &arena, .errors = &errors, .variables = &sample_variables};
}

static inline void tear_down(void)
{
    arena_reset(&arena);
}

static inline void read_good(const char *text)
{
    struct conf_node *root = conf_tree_parse(&arena, STR("t.yaml"), str_from(text), &errors);
    struct buffer out = {0};

    if (root)
        sample_walk(&reader, root, &values);
    ck_assert_int_eq(conf_errors_print(&errors, &out), 0);
    ck_assert_msg(errors.count == 0 && root, "%s\n" STR_FMT, text, STR_ARG(buffer_str(&out)));
    buffer_finish(&out);
}

static inline const struct sample_site *site_of(const struct conf_scope_values *scope)
{
    return conf_scope_group(scope, SAMPLE_SITE);
}

#endif
