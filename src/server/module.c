/*
 * The functions of module.h that concern the module itself in an exchange: its state, its configuration, and the end
 * of OUTCOME_PENDING. The others are in module_*.c by subject.
 */
#include "server/request_state.h"

#include "server/connection_internal.h"
#include "server/route.h"
#include "site/when.h"

#include <stdalign.h>
#include <stddef.h>

static unsigned module_index(const struct module *module)
{
    unsigned index = 0;

    while (module_table[index] != module)
        index++;
    return index;
}

/* The state of one module in one exchange. */
struct request_module_state {
    struct request_module_state *next;
    const struct module *module;
    alignas(max_align_t) char bytes[];
};

/* The pointer to the state of a module in the list; it points to NULL if there is none. */
static struct request_module_state **find_state(struct request_state *request, const struct module *module)
{
    struct request_module_state **state = &request->states;

    while (*state && (*state)->module != module)
        state = &(*state)->next;
    return state;
}

void *exchange_state_found(const struct exchange *x, const struct module *module)
{
    struct request_module_state *state = *find_state(request_state_of(x), module);

    return state ? state->bytes : NULL;
}

static void add_state(struct exchange *x, struct request_module_state *state)
{
    struct request_state *request = request_state_of(x);

    state->next = request->states;
    request->states = state;
}

static struct request_module_state *create_state(struct exchange *x, const struct module *module, size_t size)
{
    struct request_module_state *state = arena_zalloc(&x->arena, 1, sizeof(*state) + size);

    if (state)
        state->module = module;
    return state;
}

void *exchange_state(struct exchange *x, const struct module *module, size_t size)
{
    void *found = exchange_state_found(x, module);
    struct request_module_state *state;

    if (found)
        return found;
    state = create_state(x, module, size);
    if (!state)
        return NULL;
    add_state(x, state);
    return state->bytes;
}

void *exchange_state_pass(struct exchange *x, struct exchange *child, const struct module *module, size_t size)
{
    struct request_module_state **place = find_state(request_state_of(x), module);
    struct request_module_state *passed = *place, *state = passed ? create_state(x, module, size) : NULL;

    if (!state)
        return NULL;
    *place = passed->next;
    add_state(x, state);
    add_state(child, passed);
    return state->bytes;
}

void exchange_resume(struct exchange *x, enum outcome outcome)
{
    struct request_state *request = request_state_of(x);

    request->resumed_with = outcome;
    list_remove(&request->resumed);
    list_push(&request->worker->resumed, &request->resumed);
}

const struct when_block *exchange_when_block(const struct exchange *x, size_t index)
{
    const struct location *location = request_state_of(x)->location;

    return index < location->when_block_count ? &location->when_blocks[index] : NULL;
}

enum outcome exchange_apply_when_block(struct exchange *x, const struct when_block *when)
{
    struct request_state *request = request_state_of(x);
    enum outcome outcome = OUTCOME_DECLINED;

    if (when) {
        request->location = when->location;
        request_apply_settings(request);
        outcome = route_check_location(request);
    }
    return outcome == OUTCOME_DECLINED && !request->in_server_rules ? route_limit_body(request) : outcome;
}

const void *exchange_conf(const struct exchange *x, const struct module *module)
{
    return request_state_of(x)->location->module_conf[module_index(module)];
}

void exchange_count_as_writing(struct exchange *x)
{
    connection_timeout_count_writing(request_state_of(x)->connection);
}

struct worker *exchange_worker(const struct exchange *x)
{
    return request_state_of(x)->worker;
}

const struct clock *exchange_clock(const struct exchange *x)
{
    return &request_state_of(x)->worker->loop.clock;
}

struct str exchange_eval(struct exchange *x, const struct template *template)
{
    return template_eval(template, x, &x->arena);
}

bool exchange_satisfies_any(const struct exchange *x)
{
    return request_state_of(x)->location->site->satisfy == SATISFY_ANY;
}

bool exchange_needs_whole_body(const struct exchange *x)
{
    const struct location *location = request_state_of(x)->location;

    for (uint64_t left = location->filtering; left != 0; left &= left - 1) {
        unsigned index = (unsigned)__builtin_ctzll(left);

        if (module_table[index]->needs_whole_body &&
            module_table[index]->needs_whole_body(x, location->module_conf[index]))
            return true;
    }
    return false;
}

struct str exchange_location_name(const struct exchange *x)
{
    return request_state_of(x)->location->pattern;
}

int exchange_status(const struct exchange *x)
{
    return request_status(request_state_of(x));
}

struct str exchange_location(const struct exchange *x)
{
    const struct location *location = request_state_of(x)->location;

    return location->kind == LOCATION_NAMED || location->regex ? (struct str){NULL, 0} : location->pattern;
}
