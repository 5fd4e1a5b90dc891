/*
 * `rewrite`: changes the URI by a regular expression, or redirects. As in nginx, rules of a server run before the
 * location is selected, also after each internal redirect; rules of a location run whenever it is entered.
 */
#include "server/module.h"
#include "site/capture.h"
#include "site/subjects.h"
#include "site/user_variables.h"

#include <errno.h>
#include <stddef.h>

enum rewrite_end { REWRITE_GO_ON, REWRITE_LAST, REWRITE_BREAK, REWRITE_REDIRECT, REWRITE_PERMANENT };

struct rule {
    const struct capture *pattern;
    const struct template *path;
    const struct template *query; /* NULL: the request's query is kept */
    bool drops_query;             /* the replacement ends with "?": the request's query is not appended */
    int end;                      /* enum rewrite_end */
};

struct rewrite_conf {
    struct conf_rows rules;     /* struct rule, of this scope */
    struct conf_rows of_server; /* rules of the server, in all its locations */
    bool returns;               /* a `return` follows `rules` */
};

static const char *const ends[] = {"", "last", "break", "redirect", "permanent", NULL};

#define HINT STR("write: rewrite: ^/old/(.*)$ /new/$1 permanent")

/* Splits "/new?a=b" or "/new?" into path and query. */
static int read_replacement(struct conf_reader *reader, const struct conf_node *node, struct str word,
                            struct rule *rule)
{
    struct str query = word;
    struct str path = str_cut(&query, '?');
    int error = conf_read_template_word(reader, node, path, &rule->path);

    if (error < 0 || !query.data)
        return error;
    rule->drops_query = str_empty(query) || str_ends(query, STR("?"));
    if (str_ends(query, STR("?")))
        query.length--;
    return conf_read_template_word(reader, node, query, &rule->query);
}

static bool is_url(struct str word)
{
    return str_starts(word, STR("http://")) || str_starts(word, STR("https://")) ||
           str_starts(word, STR("$scheme"));
}

static int read_rule(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct rule *rule = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count < 2 || words.count > 3) {
        conf_error(reader->errors, node->mark, HINT,
                   "rewrite takes a regular expression, a replacement, and optionally last, break, redirect or "
                   "permanent");
        return -EINVAL;
    }
    if (words.count == 3) {
        struct conf_node word = conf_word_node(node, words.items[2]);

        error = conf_read_choice(reader, &word, ends, &rule->end);
    }
    if (error == 0 && is_url(words.items[1]) && rule->end != REWRITE_PERMANENT)
        rule->end = REWRITE_REDIRECT;
    if (error == 0)
        error = capture_read(reader, node, words.items[0], false, &rule->pattern);
    return error < 0 ? error : read_replacement(reader, node, words.items[1], rule);
}

/* Returns true if a `return` follows the rules in the configuration; last and break skip it. */
static bool return_follows(const struct conf_node *at)
{
    bool rules = false;

    for (size_t i = 0; at->kind == CONF_MAP && i < at->count; i++) {
        rules |= str_equal(at->pairs[i].key->text, STR("rewrite"));
        if (rules && str_equal(at->pairs[i].key->text, STR("return")))
            return true;
    }
    return false;
}

/* Keeps a server's rules apart from those of its locations, which inherit them. */
static int check_rules(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct rewrite_conf *own = conf;
    bool returns = return_follows(at);

    own->returns = returns;
    if (reader->scope != SCOPE_SERVER)
        return 0;
    own->of_server = own->rules;
    own->rules = (struct conf_rows){0};
    return 0;
}

static const struct directive directives[] = {
    {.name = "rewrite",
     .scopes = SCOPE_SERVER | SCOPE_LOCATION,
     .line = true,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_NONE,
     .offset = offsetof(struct rewrite_conf, rules),
     .row_size = sizeof(struct rule),
     .row = read_rule,
     .syntax = "regex replacement [last | break | redirect | permanent]",
     .example = "rewrite: ['^/old/(.*)$ /new/$1 permanent', '^/(\\d+)$ /item?id=$1 last']",
     .help = "If the regular expression matches the path, the replacement becomes the path. last: no further rule "
             "runs, and the location of the new path is selected; break: no further rule runs, and this location "
             "continues; without a flag: the following rules run, then a return after them or the location of the "
             "new path (last and break skip such a return); redirect (302) and permanent (301): the client is "
             "redirected. The query is appended, unless the replacement ends with ?.",
     .schema = "{\"type\": \"string\"}"},
    {0},
};

static bool is_unreserved(char c)
{
    return (str_lower(c) >= 'a' && str_lower(c) <= 'z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._~/", c));
}

/* Captures are decoded; they are encoded again for a query or a Location. */
static struct str encode_captured(struct arena *arena, struct str text)
{
    char *made = arena_alloc(arena, 3 * text.length + 1);
    size_t length = 0;

    if (!made)
        return (struct str){NULL, 0};
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if (is_unreserved(text.data[i])) {
            made[length++] = text.data[i];
            continue;
        }
        made[length++] = '%';
        made[length++] = "0123456789ABCDEF"[c >> 4];
        made[length++] = "0123456789ABCDEF"[c & 15];
    }
    return str_of(made, length);
}

/* Evaluates a template, encoding $1 to $9. data NULL: out of memory. */
static struct str eval_encoded(struct exchange *x, const struct template *template)
{
    struct user_variable_values *own = user_variables_of_exchanges.values(x);
    struct str *groups = own->groups;
    struct str encoded[REGEX_GROUPS];
    struct str value;

    for (size_t i = 0; groups && i < REGEX_GROUPS; i++) {
        encoded[i] = groups[i].data ? encode_captured(&x->arena, groups[i]) : groups[i];
        if (groups[i].data && !encoded[i].data)
            return encoded[i];
    }
    if (groups)
        own->groups = encoded;
    value = exchange_eval(x, template);
    own->groups = groups;
    return value;
}

/* Builds the query of the rewritten URI; *out_query has data NULL for none. 0 or -ENOMEM. */
static int make_query(struct exchange *x, const struct rule *rule, struct str *out_query)
{
    struct str old = rule->drops_query ? STR("") : x->request.query;
    struct str made;

    *out_query = x->request.query;
    if (!rule->query)
        return 0;
    made = eval_encoded(x, rule->query);
    if (made.data && made.length && old.length)
        made = arena_join(&x->arena, (const struct str[]){made, STR("&"), old}, 3);
    else if (made.data && old.length)
        made = old;
    *out_query = made;
    return made.data ? 0 : -ENOMEM;
}

static enum outcome redirect_by_rule(struct exchange *x, const struct rule *rule)
{
    struct str where = eval_encoded(x, rule->path);
    struct str query;

    if (!where.data || make_query(x, rule, &query) < 0)
        return exchange_error_response(x, 500);
    if (query.length)
        where = arena_join(&x->arena, (const struct str[]){where, STR("?"), query}, 3);
    return where.data ? exchange_redirect(x, rule->end == REWRITE_PERMANENT ? 301 : 302, where)
                      : exchange_error_response(x, 500);
}

/* OUTCOME_DECLINED: the URI is changed. 404 if ".." in a capture leaves the path of the rule. */
static enum outcome rewrite_by_rule(struct exchange *x, const struct rule *rule)
{
    struct str path = exchange_eval(x, rule->path);
    struct str query;
    int error = path.data ? make_query(x, rule, &query) : -ENOMEM;

    if (error == 0 && exchange_path_traverses(x, rule->path, path, path, false))
        return exchange_error_response(x, 404);
    if (error == 0)
        error = exchange_rewrite(x, path, query);
    return error == 0 ? OUTCOME_DECLINED
                      : exchange_error_response_log(x, 500, LOG_ERROR,
                                                    "cannot rewrite \"" STR_FMT "\" by \"" STR_FMT "\"",
                                                    STR_ARG(x->request.path), STR_ARG(capture_text(rule->pattern)));
}

/* Result of running the rules. */
struct run {
    enum outcome outcome; /* OUTCOME_DECLINED: no response */
    bool changed;         /* the URI was changed */
    int end;              /* enum rewrite_end of the last rule that matched */
};

/* Runs the rules once, in order. */
static struct run run_rules(struct exchange *x, const struct conf_rows *rows)
{
    const struct rule *rules = rows->items;
    struct run run = {.outcome = OUTCOME_DECLINED, .end = REWRITE_GO_ON};

    for (size_t i = 0; i < rows->count && run.end == REWRITE_GO_ON; i++) {
        int result = capture_match(rules[i].pattern, x, x->request.path);

        if (result == 0)
            continue;
        if (result < 0)
            return (struct run){.outcome = exchange_error_response(x, 500)};
        if (rules[i].end == REWRITE_REDIRECT || rules[i].end == REWRITE_PERMANENT)
            return (struct run){.outcome = redirect_by_rule(x, &rules[i])};
        run.outcome = rewrite_by_rule(x, &rules[i]);
        if (run.outcome != OUTCOME_DECLINED)
            return run;
        run.changed = true;
        run.end = rules[i].end;
    }
    return run;
}

/* Runs the server's rules, then those of a matching `when` in it. The location is selected afterwards. */
static enum outcome run_server(struct exchange *x, const struct rewrite_conf *own)
{
    struct run run = run_rules(x, &own->of_server);
    bool changed = run.changed;

    if (run.outcome == OUTCOME_DECLINED && run.end == REWRITE_GO_ON) {
        run = run_rules(x, &own->rules);
        changed |= run.changed;
    }
    if (changed)
        exchange_enter_internal(x);
    if (run.end != REWRITE_GO_ON)
        exchange_skip_return(x);
    return run.outcome;
}

/*
 * Runs the location's rules; a changed URI selects a new location. As in nginx, a `return` after the rules answers
 * instead, unless last or break ended them.
 */
static enum outcome run_location(struct exchange *x, const struct rewrite_conf *own)
{
    struct run run = run_rules(x, &own->rules);

    if (run.outcome != OUTCOME_DECLINED || !run.changed)
        return run.outcome;
    if (run.end != REWRITE_GO_ON && own->returns)
        exchange_skip_return(x);
    if (run.end == REWRITE_BREAK || (run.end == REWRITE_GO_ON && own->returns))
        return OUTCOME_DECLINED;
    return exchange_relocate(x);
}

static enum outcome rewrite_handler(struct exchange *x, const void *conf, void *state)
{
    return exchange_in_server_rules(x) ? run_server(x, conf) : run_location(x, conf);
}

static bool rewrite_idle(const void *conf)
{
    const struct rewrite_conf *own = conf;

    return own->rules.count == 0 && own->of_server.count == 0;
}

const struct module module_rewrite = {
    .name = "rewrite",
    .directives = directives,
    .conf_size = sizeof(struct rewrite_conf),
    .conf_check = check_rules,
    .idle = rewrite_idle,
    .server_rule = SERVER_RULE_RESPONDS,
    .handler = rewrite_handler,
};
