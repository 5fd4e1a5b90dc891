/*
 * The names of scopes, and the scopes of a schema.
 */
#include "conf/conf_schema.h"

static const struct {
    enum conf_scope scope;
    const char *name;
} scope_names[] = {
    {SCOPE_MAIN, "the main scope"}, {SCOPE_EVENTS, "events"},
    {SCOPE_HTTP, "http"},           {SCOPE_SERVER, "server"},
    {SCOPE_LOCATION, "location"},   {SCOPE_UPSTREAM, "upstream"},
    {SCOPE_STREAM, "stream"},       {SCOPE_STREAM_SERVER, "a server of stream"},
};

const char *conf_scope_name(enum conf_scope scope)
{
    for (size_t i = 0; i < sizeof(scope_names) / sizeof(scope_names[0]); i++) {
        if (scope_names[i].scope == scope)
            return scope_names[i].name;
    }
    return "no scope";
}

unsigned conf_schema_scopes(const struct conf_schema *schema)
{
    unsigned scopes = 0;

    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct directive *directives = schema->groups[slot]->directives;

        for (size_t i = 0; directives && directives[i].name; i++)
            scopes |= directives[i].scopes;
    }
    return scopes;
}
