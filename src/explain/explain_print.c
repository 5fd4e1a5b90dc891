/*
 * Writes the explanation as text or JSON by one walk over the trace.
 */
#include "explain/explain.h"
#include "explain/explain_writer.h"

#include "server/request_state.h"
#include "site/capture.h"
#include "site/when.h"

/* Finds the position and the name of a location below `outer`: its key, or the condition of a `when`. */
static bool find_mark(const struct location *outer, const struct location *wanted, struct conf_mark *out_mark,
                      struct str *out_name)
{
    const struct conf_node *keys = conf_map_get(outer->values->node, STR("location"));
    struct location *const *lists[] = {outer->inner, outer->patterns};
    const size_t counts[] = {outer->inner_count, outer->pattern_count};

    for (size_t i = 0; i < outer->when_block_count; i++) {
        if (outer->when_blocks[i].location == wanted) {
            *out_mark = outer->when_blocks[i].pair->key->mark;
            *out_name = outer->when_blocks[i].pair->key->text;
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

static void print_location(struct explain_writer *writer, const char *as, const struct request_state *request,
                           const struct location *location)
{
    struct conf_mark mark = location->values->node->mark;
    struct str name = STR("the server itself");

    if (location != request->server->root)
        (void)find_mark(request->server->root, location, &mark, &name);
    writer_text(writer, as, name);
    writer_mark(writer, mark);
}

/* The server_name that matches the host; empty: the server is the default. */
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

/*
 * HTTP/2 over TLS is a setting of the server that SNI selects (ALPN). Without TLS it is one of the default server,
 * because the host is not known at the start of a connection.
 */
static void print_protocols(struct explain_writer *writer, const struct endpoint *endpoint,
                            const struct virtual_server *server)
{
    bool http2 = endpoint->ssl ? server->tls.http2 : endpoint->servers[0]->root->session.http2.enabled;

    writer_list(writer, "protocols");
    if (http2)
        writer_item(writer, STR("HTTP/2.0"));
    writer_item(writer, STR("HTTP/1.1"));
    writer_list_end(writer);
}

static void print_server(struct explain_writer *writer, const struct explain *explain,
                         const struct request_state *request)
{
    struct str name = name_of(request->server, request->x->request.host);

    writer_begin(writer, "listen");
    writer_text(writer, "address", explain->endpoint->text);
    writer_mark(writer, explain->endpoint->mark);
    print_protocols(writer, explain->endpoint, request->server);
    writer_end(writer);
    writer_begin(writer, "server");
    if (explain->endpoint->server_count == 1)
        writer_text(writer, "name",
                    name.length                  ? name
                    : request->server->name.length ? request->server->name
                                               : STR("(no name)"));
    else
        writer_text(writer, "name", name.length ? name : STR("(the default one)"));
    writer_mark(writer, request->server->root->values->node->mark);
    writer_text(writer, "why",
                explain->endpoint->server_count == 1 ? STR("it is the only one at this address")
                : name.length                        ? STR("its server_name matches the host")
                : explain->endpoint->has_default     ? STR("no server_name matches, and it has default_server")
                                                   : STR("no server_name matches, and it is the first one"));
    writer_end(writer);
}

static const char *const outcome_texts[] = {
    [OUTCOME_DECLINED] = "continues",
    [OUTCOME_RESPONDED] = "answers",
    [OUTCOME_PENDING] = "waits",
    [OUTCOME_ALLOWED] = "grants access",
    [OUTCOME_INTERNAL_REDIRECT] = "redirects internally",
};

/* Prints the changes that a module made: the differences to the request before the next module, or at the end. */
static void print_effect(struct explain_writer *writer, const struct explain_step *step,
                         const struct explain_step *next, const struct request_state *request)
{
    struct str path = next ? next->path : request->x->request.path;
    struct str query = next ? next->query : request->x->request.query;

    if (!str_equal(path, step->path))
        writer_text(writer, "path", path);
    if (!str_equal(query, step->query))
        writer_text(writer, "query", query);
    if (step->outcome == OUTCOME_RESPONDED && step->status && !step->not_called)
        writer_number(writer, "status", (uint64_t)step->status);
}

/* Prints the directives of a module that apply in the location. */
static void print_directives(struct explain_writer *writer, const struct request_state *request,
                             const struct location *location, int module);

static void print_step(struct explain_writer *writer, const struct explain *explain,
                       const struct request_state *request, size_t at)
{
    const struct explain_step *step = &explain->steps[at];
    const struct explain_step *next = at + 1 < explain->step_count ? step + 1 : NULL;

    writer_begin(writer, NULL);
    writer_text(writer, "module", str_from(module_table[step->module]->name));
    if (step->not_called)
        writer_text(writer, "does",
                    module_table[step->module]->explain_mode == EXPLAIN_UPSTREAM
                      ? STR("passes the request on (skipped)")
                      : STR("is skipped (assumed to allow the request)"));
    else
        writer_text(writer, "does", str_from(outcome_texts[step->outcome]));
    print_effect(writer, step, next, request);
    print_directives(writer, request, step->location, (int)step->module);
    writer_end(writer);
}

/* Prints one group of steps for each location that the request reached. */
static void print_steps(struct explain_writer *writer, const struct explain *explain,
                        const struct request_state *request)
{
    writer_list(writer, "steps");
    for (size_t i = 0; i < explain->step_count;) {
        const struct location *location = explain->steps[i].location;

        writer_begin(writer, NULL);
        print_location(writer, "location", request, location);
        writer_text(writer, "path", explain->steps[i].path);
        writer_list(writer, "modules");
        for (; i < explain->step_count && explain->steps[i].location == location; i++)
            print_step(writer, explain, request, i);
        writer_list_end(writer);
        writer_end(writer);
    }
    writer_list_end(writer);
}

/* Prints the file of the response, or the directory of a listing. */
static void print_file(struct explain_writer *writer, const struct explain *explain, struct request_state *request)
{
    const struct explain_step *last = explain->step_count ? &explain->steps[explain->step_count - 1] : NULL;
    const char *name = last ? module_table[last->module]->name : "";
    struct str root, path;

    if ((strcmp(name, "static") != 0 && strcmp(name, "autoindex") != 0) ||
        exchange_file(request->x, request->x->request.path, &root, &path) < 0)
        return;
    writer_text(writer, "file",
                arena_printf(&request->x->arena, STR_FMT "%s" STR_FMT, STR_ARG(root),
                             str_ends(root, STR("/")) ? "" : "/", STR_ARG(path)));
}

static void print_answer(struct explain_writer *writer, const struct explain *explain, struct request_state *request)
{
    const struct response *response = &request->x->response;
    const struct explain_step *last = explain->step_count ? &explain->steps[explain->step_count - 1] : NULL;
    bool elsewhere = last && last->not_called && module_table[last->module]->explain_mode == EXPLAIN_UPSTREAM;

    writer_begin(writer, "answer");
    if (elsewhere)
        writer_text(writer, "by", STR("the upstream server, which was not contacted"));
    else if (response->status == 444)
        writer_text(writer, "by", STR("no module: the connection is closed"));
    else
        writer_number(writer, "status", (uint64_t)response->status);
    print_file(writer, explain, request);
    writer_begin(writer, "headers");
    for (unsigned i = 0; i < response->headers.count && !elsewhere; i++)
        writer_field(writer, response->headers.items[i].name, response->headers.items[i].value);
    writer_end(writer);
    writer_end(writer);
}

static void print_modules(struct explain_writer *writer, const char *name, uint64_t modules)
{
    writer_list(writer, name);
    for (unsigned i = 0; module_table[i]; i++) {
        if (modules >> i & 1)
            writer_item(writer, str_from(module_table[i]->name));
    }
    writer_list_end(writer);
}

/* The kind of a scope. Called for all scopes of a location, from the innermost outwards. */
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

static bool is_overridden(const struct request_state *request, const struct conf_scope_values *from,
                          const struct conf_scope_values *until, struct str name)
{
    for (; from != until; from = from->outer) {
        if (conf_map_get(from->node, name))
            return true;
    }
    return false;
}

static void print_directives(struct explain_writer *writer, const struct request_state *request,
                             const struct location *location, int module)
{
    bool past_server = false;

    writer_list(writer, "directives");
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
                (row->merge != MERGE_APPEND && is_overridden(request, location->values, values, pair->key->text)))
                continue;
            writer_begin(writer, NULL);
            writer_text(writer, "name", pair->key->text);
            writer_value(writer, "value", pair->value);
            writer_mark(writer, pair->key->mark);
            writer_end(writer);
        }
    }
    writer_list_end(writer);
}

int explain_print(const struct explain *explain, struct request_state *request, struct buffer *out)
{
    struct explain_writer writer = {.out = out, .json = explain->format == OUTPUT_JSON};
    const struct location *location = request->location;

    writer_open(&writer, str_from(explain->url));
    print_server(&writer, explain, request);
    writer_begin(&writer, "location");
    print_location(&writer, "name", request, location);
    writer_end(&writer);
    print_steps(&writer, explain, request);
    print_answer(&writer, explain, request);
    print_modules(&writer, "answering", location->handlers);
    print_modules(&writer, "filtering", location->filtering);
    print_directives(&writer, request, location, -1);
    writer_close(&writer);
    return writer.error;
}
