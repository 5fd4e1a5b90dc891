/*
 * The explanation, as text and as JSON: one walk over what is known, and two notations.
 */
#include "explain/explain.h"
#include "explain/explain_tell.h"

#include "server/request_state.h"
#include "site/capture.h"
#include "site/when.h"

/* Where the location stands whose values these are: its key, or the map of a `when`. */
static bool find_mark(const struct location *outer, const struct location *wanted, struct conf_mark *out_mark,
                      struct str *out_name)
{
    const struct conf_node *keys = conf_map_get(outer->values->node, STR("location"));
    struct location *const *lists[] = {outer->inner, outer->patterns};
    const size_t counts[] = {outer->inner_count, outer->pattern_count};

    for (size_t i = 0; i < outer->when_count; i++) {
        if (outer->whens[i].location == wanted) {
            *out_mark = outer->whens[i].pair->key->mark;
            *out_name = outer->whens[i].pair->key->text;
            return true;
        }
    }
    for (size_t list = 0; list < 2; list++) {
        for (size_t i = 0; i < counts[list]; i++) {
            const struct location *inner = lists[list][i];

            for (size_t k = 0; inner == wanted && keys && k < keys->count; k++) {
                if (keys->kind == CONF_MAP && keys->pairs[k].value == inner->values->node) {
                    *out_mark = keys->pairs[k].key->mark;
                    *out_name = keys->pairs[k].key->text;
                }
            }
            if (inner == wanted || find_mark(inner, wanted, out_mark, out_name))
                return true;
        }
    }
    return false;
}

static void tell_location(struct tell *tell, const char *as, const struct request_state *request,
                          const struct location *location)
{
    struct conf_mark mark = location->values->node->mark;
    struct str name = STR("the server itself");

    if (location != request->server->root)
        (void)find_mark(request->server->root, location, &mark, &name);
    tell_text(tell, as, name);
    tell_mark(tell, mark);
}

/* The name of the server that the host fits; empty: it answers for unknown ones. */
static struct str name_of(const struct virtual_server *server, struct str host)
{
    size_t patterns = 0;

    if (host.length > 1 && str_ends(host, STR(".")))
        host.length--;
    for (size_t i = 0; i < server->names.count; i++) {
        struct str name = server->names.items[i];

        if (str_equal(name, host) || (str_starts(name, STR("*.")) && str_ends(host, str_skip(name, 1))) ||
            (str_starts(name, STR(".")) && (str_ends(host, name) || str_equal(host, str_skip(name, 1)))) ||
            (str_ends(name, STR(".*")) && str_starts(host, str_slice(name, 0, name.length - 1))))
            return name;
    }
    for (size_t i = 0; i < server->names.count && patterns < server->pattern_count; i++) {
        if (str_starts(server->names.items[i], STR("~")) &&
            regex_match(capture_regex(server->patterns[patterns++]), host) == 1)
            return server->names.items[i];
    }
    return STR("");
}

static void tell_server(struct tell *tell, const struct explain *explain, const struct request_state *request)
{
    struct str name = name_of(request->server, request->x->request.host);

    tell_begin(tell, "listen");
    tell_text(tell, "address", explain->endpoint->text);
    tell_mark(tell, explain->endpoint->mark);
    tell_end(tell);
    tell_begin(tell, "server");
    if (explain->endpoint->server_count == 1)
        tell_text(tell, "name",
                  name.length                  ? name
                  : request->server->name.length ? request->server->name
                                               : STR("(no name)"));
    else
        tell_text(tell, "name", name.length ? name : STR("(the default one)"));
    tell_mark(tell, request->server->root->values->node->mark);
    tell_text(tell, "why",
              explain->endpoint->server_count == 1 ? STR("it is the only one at this address")
              : name.length                        ? STR("its server_name fits the host")
              : explain->endpoint->has_default     ? STR("no server_name fits, and it says default_server")
                                                   : STR("no server_name fits, and it stands first"));
    tell_end(tell);
}

static const char *const spoken[] = {
    [OUTCOME_PASS] = "goes on",
    [OUTCOME_ANSWERED] = "answers",
    [OUTCOME_PENDING] = "looks, and then",
    [OUTCOME_ALLOWED] = "lets in",
    [OUTCOME_INTERNAL_REDIRECT] = "goes to another URI",
};

/* What the module asked for has come about by the time that the next one is asked, or all is over. */
static void tell_effect(struct tell *tell, const struct explain_step *step, const struct explain_step *next,
                        const struct request_state *request)
{
    struct str path = next ? next->path : request->x->request.path;
    struct str query = next ? next->query : request->x->request.query;

    if (!str_equal(path, step->path))
        tell_text(tell, "path", path);
    if (!str_equal(query, step->query))
        tell_text(tell, "query", query);
    if (step->outcome == OUTCOME_ANSWERED && step->status && !step->passed_over)
        tell_number(tell, "status", (uint64_t)step->status);
}

/* The module's own directives that hold in the location. */
static void tell_directives(struct tell *tell, const struct request_state *request, const struct location *location,
                            int module);

static void tell_step(struct tell *tell, const struct explain *explain, const struct request_state *request, size_t at)
{
    const struct explain_step *step = &explain->steps[at];
    const struct explain_step *next = at + 1 < explain->step_count ? step + 1 : NULL;

    tell_begin(tell, NULL);
    tell_text(tell, "module", str_from(module_table[step->module]->name));
    if (step->passed_over)
        tell_text(tell, "does",
                  module_table[step->module]->others == OTHERS_ANSWER
                      ? STR("passes the request on (not done here)")
                      : STR("asks others (not done here, and taken for granted)"));
    else
        tell_text(tell, "does", str_from(spoken[step->outcome]));
    tell_effect(tell, step, next, request);
    tell_directives(tell, request, step->location, (int)step->module);
    tell_end(tell);
}

/* One group of steps for each location that the request came to. */
static void tell_steps(struct tell *tell, const struct explain *explain, const struct request_state *request)
{
    tell_list(tell, "steps");
    for (size_t i = 0; i < explain->step_count;) {
        const struct location *location = explain->steps[i].location;

        tell_begin(tell, NULL);
        tell_location(tell, "location", request, location);
        tell_text(tell, "path", explain->steps[i].path);
        tell_list(tell, "modules");
        for (; i < explain->step_count && explain->steps[i].location == location; i++)
            tell_step(tell, explain, request, i);
        tell_list_end(tell);
        tell_end(tell);
    }
    tell_list_end(tell);
}

/* The file that holds what was answered; for a folder's list the folder. */
static void tell_file(struct tell *tell, const struct explain *explain, struct request_state *request)
{
    const struct explain_step *last = explain->step_count ? &explain->steps[explain->step_count - 1] : NULL;
    const char *name = last ? module_table[last->module]->name : "";
    struct str root, path;

    if ((strcmp(name, "static") != 0 && strcmp(name, "autoindex") != 0) ||
        exchange_file(request->x, request->x->request.path, &root, &path) < 0)
        return;
    tell_text(tell, "file",
              arena_printf(&request->x->arena, STR_FMT "%s" STR_FMT, STR_ARG(root),
                           str_ends(root, STR("/")) ? "" : "/", STR_ARG(path)));
}

static void tell_answer(struct tell *tell, const struct explain *explain, struct request_state *request)
{
    const struct response *response = &request->x->response;
    const struct explain_step *last = explain->step_count ? &explain->steps[explain->step_count - 1] : NULL;
    bool elsewhere = last && last->passed_over && module_table[last->module]->others == OTHERS_ANSWER;

    tell_begin(tell, "answer");
    if (elsewhere)
        tell_text(tell, "by", STR("the server behind, which was not asked"));
    else if (response->status == 444)
        tell_text(tell, "by", STR("nobody: the connection ends"));
    else
        tell_number(tell, "status", (uint64_t)response->status);
    tell_file(tell, explain, request);
    tell_begin(tell, "headers");
    for (unsigned i = 0; i < response->headers.count && !elsewhere; i++)
        tell_field(tell, response->headers.items[i].name, response->headers.items[i].value);
    tell_end(tell);
    tell_end(tell);
}

static void tell_modules(struct tell *tell, const char *name, uint64_t modules)
{
    tell_list(tell, name);
    for (unsigned i = 0; module_table[i]; i++) {
        if (modules >> i & 1)
            tell_item(tell, str_from(module_table[i]->name));
    }
    tell_list_end(tell);
}

/* Scopes from a location outwards, and what each is. */
static enum conf_scope scope_of(const struct request_state *request, const struct conf_scope_values *values,
                                bool *past_server)
{
    if (*past_server)
        return SCOPE_HTTP;
    *past_server = values == request->server->root->values;
    return *past_server ? SCOPE_SERVER : SCOPE_LOCATION;
}

static const struct directive *directive_of(enum conf_scope scope, struct str name, size_t *out_group)
{
    const struct conf_schema *schema = configuration_schema();

    for (size_t group = 0; group < schema->count; group++) {
        const struct directive *row = schema->groups[group]->directives;

        for (; row && row->name; row++) {
            if (row->scopes & scope && str_equal(name, str_from(row->name))) {
                *out_group = group;
                return row;
            }
        }
    }
    return NULL;
}

static bool said_inside(const struct request_state *request, const struct conf_scope_values *from,
                        const struct conf_scope_values *until, struct str name)
{
    for (; from != until; from = from->outer) {
        if (conf_map_get(from->node, name))
            return true;
    }
    return false;
}

static void tell_directives(struct tell *tell, const struct request_state *request, const struct location *location,
                            int module)
{
    bool past_server = false;

    tell_list(tell, "directives");
    for (const struct conf_scope_values *values = location->values; values && values->outer;
         values = values->outer) {
        enum conf_scope scope = scope_of(request, values, &past_server);

        for (size_t i = 0; values->node->kind == CONF_MAP && i < values->node->count; i++) {
            const struct conf_pair *pair = &values->node->pairs[i];
            size_t group;
            const struct directive *row = directive_of(scope, pair->key->text, &group);

            if (!row || (module >= 0 && group != CORE_GROUPS + (size_t)module))
                continue;
            if ((row->merge == MERGE_NONE && values != location->values && scope != SCOPE_SERVER) ||
                (row->merge != MERGE_APPEND && said_inside(request, location->values, values, pair->key->text)))
                continue;
            tell_begin(tell, NULL);
            tell_text(tell, "name", pair->key->text);
            tell_value(tell, "value", pair->value);
            tell_mark(tell, pair->key->mark);
            tell_end(tell);
        }
    }
    tell_list_end(tell);
}

int explain_print(const struct explain *explain, struct request_state *request, struct buffer *out)
{
    struct tell tell = {.out = out, .json = explain->format == OUTPUT_JSON};
    const struct location *location = request->location ? request->location : request->server->root;

    tell_open(&tell, str_from(explain->url));
    tell_server(&tell, explain, request);
    tell_begin(&tell, "location");
    tell_location(&tell, "name", request, location);
    tell_end(&tell);
    tell_steps(&tell, explain, request);
    tell_answer(&tell, explain, request);
    tell_modules(&tell, "answering", location->answering);
    tell_modules(&tell, "shaping", location->shaping);
    tell_directives(&tell, request, location, -1);
    tell_close(&tell);
    return tell.error;
}
