/*
 * `set`, then `when`: sets variables, then applies the directives of the first matching condition in addition to the
 * location's. site/when.h defines the conditions; a condition on a file may be asynchronous.
 */
#include "when_conf.h"

#include "site/capture.h"
#include "site/when.h"

#include <errno.h>

struct evaluation {
    struct file_lookup lookup;
    struct exchange *x;
    size_t when, condition; /* condition being evaluated */
    size_t sets;            /* rows already run before the location was selected */
    const struct conf_pair *matched; /* the server's condition that held when its rules ran; NULL: none */
};

extern const struct module module_when;
static enum outcome evaluate_conditions(struct evaluation *evaluation);

static int set_one(struct exchange *x, const struct setting *setting)
{
    struct str value = exchange_eval(x, setting->value);

    if (!value.data)
        return -ENOMEM;
    if (setting->variable)
        return user_variable_set(x, setting->variable, value);
    /* Marks the URI as changed: gateways then build the request target again. */
    return exchange_rewrite(x, x->request.path, value);
}

/* Runs the rows not yet run: all, or those added by a condition. */
static int set_all(struct evaluation *evaluation)
{
    const struct when_conf *conf = exchange_conf(evaluation->x, &module_when);
    const struct set_row *rows = conf->sets.items;

    for (; evaluation->sets < conf->sets.count; evaluation->sets++) {
        for (size_t i = 0; i < rows[evaluation->sets].count; i++) {
            int error = set_one(evaluation->x, &rows[evaluation->sets].items[i]);

            if (error < 0)
                return error;
        }
    }
    return 0;
}

/*
 * Advances after a condition with the given result, within this `when` or to the next one. True: all conditions of
 * `when` hold.
 */
static bool next_condition(struct evaluation *evaluation, const struct when_block *when, bool holds)
{
    if (holds == when->conditions[evaluation->condition].negated) {
        evaluation->when++;
        evaluation->condition = 0;
        return false;
    }
    return ++evaluation->condition == when->count;
}

static enum outcome apply_when(struct evaluation *evaluation, const struct when_block *when)
{
    enum outcome outcome;

    if (exchange_in_server_rules(evaluation->x)) {
        evaluation->matched = when->pair;
        if (!when->rules) /* applied in the location */
            return OUTCOME_DECLINED;
    }
    outcome = exchange_apply_when_block(evaluation->x, when);

    if (outcome == OUTCOME_DECLINED && set_all(evaluation) < 0)
        return exchange_error_response(evaluation->x, 500);
    return outcome;
}

static bool entry_satisfies(const struct condition *condition, const struct file_entry *entry)
{
    bool is_directory = S_ISDIR(entry->stat.st_mode);

    return entry->error == 0 &&
           (condition->kind == CONDITION_EXISTS || is_directory == (condition->kind == CONDITION_DIRECTORY));
}

/* Continues with the result of the lookup. */
static enum outcome evaluate_entry(struct evaluation *evaluation, struct file_entry *entry)
{
    const struct when_block *when = exchange_when_block(evaluation->x, evaluation->when);
    bool holds = entry_satisfies(&when->conditions[evaluation->condition], entry);

    file_entry_unref(entry);
    return next_condition(evaluation, when, holds) ? apply_when(evaluation, when) : evaluate_conditions(evaluation);
}

static void when_lookup_done(struct file_lookup *lookup, struct file_entry *entry)
{
    struct evaluation *evaluation = container_of(lookup, struct evaluation, lookup);
    struct exchange *x = evaluation->x;
    enum outcome outcome = OUTCOME_PENDING;

    if (x->cancelled)
        file_entry_unref(entry);
    else
        outcome = entry ? evaluate_entry(evaluation, entry) : exchange_error_response(x, 500);
    if (outcome != OUTCOME_PENDING)
        exchange_resume(x, outcome);
    exchange_release(x);
}

/* True for "/srv/www/x" with "/srv/www" or "/srv/www/"; false for "/srv/www2". */
static bool is_below(struct str path, struct str root)
{
    return root.length > 1 && str_starts(path, root) &&
           (str_ends(root, STR("/")) || str_starts(str_skip(path, root.length), STR("/")));
}

/*
 * Looks up a file. Below the location's root disable_symlinks applies, as for files that are served; elsewhere only
 * the permissions of the worker's user do.
 */
static struct file_entry *find_condition_file(struct evaluation *evaluation, struct str path, bool *out_pending)
{
    struct exchange *x = evaluation->x;
    struct str root = exchange_root(x);
    bool served = is_below(path, root);
    struct str directory = served ? root : STR("/");
    enum symlinks symlinks = SYMLINKS_ANYWHERE;

    path = str_skip(path, directory.length);
    if (served && !exchange_symlinks_from(x, &directory, &path, &symlinks))
        return NULL;
    while (str_starts(path, STR("/")))
        path = str_skip(path, 1);
    return file_cache_get(worker_file_cache(exchange_worker(x)), &evaluation->lookup, directory, path, symlinks,
                          out_pending);
}

/* 1, 0 or -errno; -EAGAIN: when_lookup_done is called with the result. */
static int evaluate_file(struct evaluation *evaluation, const struct condition *condition, struct str path)
{
    bool pending = false;
    struct file_entry *entry;
    int result;

    if (!str_starts(path, STR("/")))
        return 0;
    entry = find_condition_file(evaluation, path, &pending);
    if (!entry)
        return pending ? -EAGAIN : -ENOMEM;
    result = entry_satisfies(condition, entry);
    file_entry_unref(entry);
    return result;
}

static bool is_one_of(const struct conf_words *words, struct str value)
{
    for (size_t i = 0; i < words->count; i++) {
        if (str_equal(words->items[i], value))
            return true;
    }
    return false;
}

/* As evaluate_file, for any condition. */
static int evaluate_condition(struct evaluation *evaluation, const struct condition *condition)
{
    struct exchange *x = evaluation->x;
    struct str value = exchange_eval(x, condition->value);

    if (!value.data)
        return -ENOMEM;
    switch (condition->kind) {
    case CONDITION_TRUE:
        return !str_empty(value) && !str_equal(value, STR("0"));
    case CONDITION_EQUALS:
        return str_equal(value, exchange_eval(x, condition->operand));
    case CONDITION_MATCHES:
        return capture_match(condition->pattern, x, value);
    case CONDITION_AMONG:
        return is_one_of(&condition->among, value);
    case CONDITION_FILE:
    case CONDITION_DIRECTORY:
    case CONDITION_EXISTS:
        break;
    }
    return evaluate_file(evaluation, condition, value);
}

static enum outcome evaluate_conditions(struct evaluation *evaluation)
{
    const struct when_block *when;

    while ((when = exchange_when_block(evaluation->x, evaluation->when))) {
        int result;

        if (when->rules && !exchange_in_server_rules(evaluation->x)) {
            if (when->pair == evaluation->matched && !exchange_uri_changed(evaluation->x))
                return exchange_apply_when_block(evaluation->x, when->only_rules ? NULL : when);
            evaluation->when++;
            continue;
        }
        result = evaluate_condition(evaluation, &when->conditions[evaluation->condition]);
        if (result == -EAGAIN) {
            /*
             * The lookup is in the exchange's arena, which must exist until when_lookup_done, also after a
             * disconnect.
             */
            exchange_hold(evaluation->x);
            return OUTCOME_PENDING;
        }
        if (result < 0)
            return exchange_error_response(evaluation->x, 500);
        if (next_condition(evaluation, when, result == 1))
            return apply_when(evaluation, when);
    }
    return exchange_apply_when_block(evaluation->x, NULL);
}

static enum outcome when_handler(struct exchange *x, const void *conf, void *state)
{
    const struct when_conf *own = conf;
    struct evaluation *evaluation;

    evaluation = exchange_state(x, &module_when, sizeof(*evaluation));
    if (!evaluation)
        return exchange_error_response(x, 500);
    *evaluation = (struct evaluation){.x = x,
                                      .lookup = {.found = when_lookup_done},
                                      .sets = exchange_in_server_rules(x) ? 0 : own->outer_sets,
                                      .matched = exchange_in_server_rules(x) ? NULL : evaluation->matched};
    return set_all(evaluation) < 0 ? exchange_error_response(x, 500) : evaluate_conditions(evaluation);
}

static void when_cancel(struct exchange *x, void *state)
{
    struct evaluation *evaluation = exchange_state(x, &module_when, sizeof(*evaluation));

    if (evaluation && evaluation->x)
        file_lookup_cancel(&evaluation->lookup);
}

static bool when_idle(const void *conf)
{
    const struct when_conf *own = conf;

    return own->sets.count == 0 && !own->seen && !own->limited;
}

const struct module module_when = {
    .name = "when",
    .directives = when_directives,
    .conf_size = sizeof(struct when_conf),
    .conf_check = when_conf_check,
    .idle = when_idle,
    .server_rule = SERVER_RULE_RESPONDS,
    .handler = when_handler,
    .cancel = when_cancel,
};
