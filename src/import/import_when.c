/*
 * nginx's `if` as `when`. nginx runs set, if, rewrite, return and break in file order, and continues after an `if`
 * that has not answered; sluice overlays the first condition that holds on its location, after all set and before
 * rewrite and return. Equivalent constructs are carried over, others are left out or noted.
 */
#include "import/import_scope.h"

static bool directive_is(const struct nginx_directive *directive, const char *name)
{
    return str_equal(directive->name, str_from(name));
}

static bool is_script(const struct nginx_directive *directive)
{
    return directive_is(directive, "set") || directive_is(directive, "if") || directive_is(directive, "rewrite") ||
           directive_is(directive, "return") || directive_is(directive, "break");
}

static bool fits_always(struct str pattern)
{
    static const char *const patterns[] = {"^",     ".*",     "^.*",   "^.*$",    "(.*)",    "^(.*)$",
                                           "^(.*)", "^/",     "^/.*$", "^/(.*)",  "^/(.*)$", "/(.*)",
                                           "/",     "^(.+)$", "^(.+)", "^/?(.*)$"};

    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        if (str_equal(pattern, str_from(patterns[i])))
            return true;
    }
    return false;
}

/* True if a matching rewrite ends the sequence. */
static bool rewrite_ends(const struct nginx_directive *rewrite)
{
    return rewrite->count == 3 || (rewrite->count == 2 && (str_starts(rewrite->words[1], STR("http://")) ||
                                                           str_starts(rewrite->words[1], STR("https://")) ||
                                                           str_starts(rewrite->words[1], STR("$scheme"))));
}

static struct nginx_directive *find_live(const struct nginx_directive *block, const char *name)
{
    struct nginx_directive *child = block->first;

    while (child && (child->dead || !directive_is(child, name)))
        child = child->next;
    return child;
}

/* True if nothing after the `if` runs once it is entered. */
static bool body_ends(const struct nginx_directive *body)
{
    for (const struct nginx_directive *child = body->first; child; child = child->next) {
        if (directive_is(child, "return") || directive_is(child, "break") ||
            (directive_is(child, "rewrite") && child->count >= 2 && rewrite_ends(child) &&
             fits_always(child->words[0])))
            return true;
    }
    return false;
}

static bool has_flagless_rewrite(const struct nginx_directive *block, const struct nginx_directive *before)
{
    for (const struct nginx_directive *child = block->first; child != before; child = child->next) {
        if (directive_is(child, "rewrite") && !rewrite_ends(child))
            return true;
    }
    return false;
}

static void check_break(struct import *import, const struct scope *scope, struct nginx_directive *directive)
{
    directive->dead = true;
    if (has_flagless_rewrite(scope->block, directive))
        import_leave_out(import, scope->map, directive, "write break behind the rewrite that it belongs to");
    else
        import_add_note(import, IMPORT_NEEDLESS, directive,
                        "what comes before it has ended already, or nothing follows it");
}

/* True if an earlier `if` or rewrite of the block sets or reads the variable of this `set`. */
static bool set_is_late(const struct nginx_directive *block, const struct nginx_directive *set)
{
    bool script = false;

    for (const struct nginx_directive *child = block->first; child != set; child = child->next) {
        const struct str name = set->count ? str_skip(set->words[0], 1) : STR("");

        if (child->sets)
            continue;
        script |= directive_is(child, "if") || directive_is(child, "rewrite");
        for (size_t i = 0; !directive_is(child, "set") && is_script(child) && i < child->count; i++) {
            if (word_has_variable(child->words[i], name))
                return true;
        }
        for (const struct nginx_directive *inner = child->first; directive_is(child, "if") && inner;
             inner = inner->next) {
            if (directive_is(inner, "set") && inner->count && set->count && str_equal(inner->words[0], set->words[0]))
                return true;
        }
    }
    return script && set->count > 1 && word_has_capture(set->words[1]);
}

static bool has_access_rules(const struct nginx_directive *block)
{
    static const char *const names[] = {"deny", "auth_basic", "auth_request"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (nginx_tree_find(block, str_from(names[i])))
            return true;
    }
    return false;
}

static bool has_rules_of_access(const struct scope *scope)
{
    for (; scope; scope = scope->outer) {
        if (has_access_rules(scope->block))
            return true;
    }
    return false;
}

/* True if a location of the block, at any depth, has an `if` or another condition. */
static bool conditions_below(const struct nginx_directive *block)
{
    for (const struct nginx_directive *child = block->first; child; child = child->next) {
        if (directive_is(child, "location") &&
            (find_live(child, "if") || find_live(child, "limit_except") || conditions_below(child)))
            return true;
    }
    return false;
}

/* True if the condition or its body depends on the path. */
static bool tests_path(const struct nginx_directive *directive)
{
    static const char *const names[] = {"uri", "document_uri", "request_filename", "fastcgi_script_name"};

    for (size_t i = 0; i < directive->count; i++) {
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            if (word_has_variable(directive->words[i], str_from(names[k])))
                return true;
        }
        if (word_has_capture(directive->words[i]))
            return true;
    }
    return false;
}

static const struct nginx_directive *rewrite_before(const struct scope *scope,
                                                    const struct nginx_directive *directive)
{
    const struct nginx_directive *rewrite = find_live(scope->block, "rewrite");

    for (const struct nginx_directive *child = rewrite; child; child = child->next) {
        if (child == directive)
            return rewrite;
    }
    return NULL;
}

/* True if the directive may end the server's rules without a response: the request then reaches a location. */
static bool leads_to_location(const struct nginx_directive *directive)
{
    if (directive_is(directive, "rewrite"))
        return directive->count == 3 &&
               (str_equal(directive->words[2], STR("last")) || str_equal(directive->words[2], STR("break")));
    if (directive_is(directive, "break"))
        return true;
    for (const struct nginx_directive *child = directive_is(directive, "if") ? directive->first : NULL; child;
         child = child->next) {
        if (leads_to_location(child))
            return true;
    }
    return false;
}

/*
 * The locations of a server that always answers itself are unreachable, except named ones: error_page leads there
 * without the server's rules.
 */
static void check_locations(struct import *import, const struct scope *scope, const struct nginx_directive *answer)
{
    for (const struct nginx_directive *child = scope->block->first; child && child != answer; child = child->next) {
        if (leads_to_location(child))
            return;
    }
    for (struct nginx_directive *child = scope->block->first; child; child = child->next) {
        if (!directive_is(child, "location") || (child->count == 1 && str_starts(child->words[0], STR("@"))))
            continue;
        child->dead = true;
        import_add_note(import, IMPORT_NEEDLESS, child, "never reached: the server answers by itself in line %u",
                        answer->place.line);
    }
}

/* If several conditions may hold, those that only set variables become maps: all of them apply. */
static void check_sets(struct import *import, const struct scope *scope)
{
    unsigned conditions = scope->kind == SCOPE_SERVER && conditions_below(scope->block) ? 2 : 0;

    for (const struct nginx_directive *child = scope->block->first; child; child = child->next)
        conditions += directive_is(child, "if");
    for (struct nginx_directive *child = scope->block->first; child && conditions > 1; child = child->next) {
        if (directive_is(child, "if") && !(rewrite_before(scope, child) && tests_path(child)))
            child->sets = becomes_set(import, child);
    }
}

void check_order(struct import *import, const struct scope *scope)
{
    const struct nginx_directive *end = NULL;

    if (!(scope->kind & (SCOPE_SERVER | SCOPE_LOCATION)))
        return;
    check_sets(import, scope);
    for (struct nginx_directive *child = scope->block->first; child; child = child->next) {
        if (!is_script(child))
            continue;
        if (end) {
            child->dead = true;
            import_add_note(import, IMPORT_NEEDLESS, child, "never reached: line %u has ended it", end->place.line);
        } else if (directive_is(child, "break")) {
            check_break(import, scope, child);
            end = child;
        } else if (directive_is(child, "return")) {
            end = child;
        } else if (directive_is(child, "set") && set_is_late(scope->block, child)) {
            import_add_note(import, IMPORT_CHANGED, child, "all set come before when and rewrite here");
        }
    }
    if (!end || !directive_is(end, "return"))
        return;
    if (scope->kind == SCOPE_SERVER)
        check_locations(import, scope, end);
    if (has_rules_of_access(scope))
        import_add_note(import, IMPORT_CHANGED, end,
                        "access rules are checked before return here, and after it in nginx");
}

/*
 * True for a server's `if` that redirects internally, after which nginx may continue in another location or by other
 * rules than sluice: without a match the location's rules apply there, and not here.
 */
static bool leaves_location(const struct nginx_directive *directive)
{
    bool file = directive->count == 2 && str_search(directive->words[0], STR("-")) >= 0;
    bool fits = file || body_ends(directive);

    for (const struct nginx_directive *child = directive->first; child; child = child->next) {
        bool last = child->count == 3 && str_equal(child->words[2], STR("last"));
        bool outside =
            rewrite_ends(child) && !last && !(child->count == 3 && str_equal(child->words[2], STR("break")));

        if (directive_is(child, "rewrite") && !outside && !(last && fits))
            return true;
    }
    return false;
}

/* The reason why a `when` would behave differently; NULL: equivalent. */
static const char *why_unsafe(const struct scope *scope, const struct nginx_directive *directive)
{
    bool ends = body_ends(directive);
    bool breaks = find_live(directive, "break") && !find_live(directive, "return") && !find_live(directive, "rewrite");

    if (rewrite_before(scope, directive) && tests_path(directive))
        return "it asks for what a rewrite above it has made, and when comes before rewrite";
    for (const struct nginx_directive *later = directive->next; later; later = later->next) {
        if (later->dead || !is_script(later) || (later->sets && !find_live(directive, "set")))
            continue;
        if (directive_is(later, "if") && !ends)
            return "nginx goes on to the next if behind this one, and when takes the first condition that "
                   "holds: make "
                   "one variable of both by map";
        if (breaks && !directive_is(later, "if"))
            return "there is no break that skips what follows: name in a condition what is to be rewritten";
    }
    if (scope->kind == SCOPE_SERVER && leaves_location(directive))
        return "nginx may go on in another location, or with what that rewrites: write it in the location that it is "
               "about, or rewrite what always fits, with last";
    if (scope->kind == SCOPE_SERVER && (!ends || breaks) && conditions_below(scope->block))
        return "locations have conditions, too, and when takes the first one that holds: make a variable by "
               "map";
    return NULL;
}

/* "$a", "=", "b" of "($a", "=", "b)". */
bool condition_words(struct import *import, const struct nginx_directive *directive, struct str **out_words,
                     size_t *out_count)
{
    struct str *words = arena_zalloc(import->arena, directive->count + 1, sizeof(*words));
    size_t count = 0;

    import->out_of_memory |= !words;
    if (!words || directive->count == 0 || !str_starts(directive->words[0], STR("(")))
        return false;
    for (size_t i = 0; i < directive->count; i++) {
        struct str word = directive->words[i];
        bool first = i == 0, last = i + 1 == directive->count;

        word = str_skip(word, first);
        if (last) {
            if (!str_ends(word, STR(")")))
                return false;
            word.length--;
        }
        if (word.length || !(first || last))
            words[count++] = word;
    }
    if (count == 0 || count > 3 || str_equal(words[0], STR("-x")) || str_equal(words[0], STR("!-x")))
        return false;
    for (size_t i = 0; i < count; i++) {
        bool regex = i == 2 && str_find(words[1], '~') >= 0;

        if (!regex)
            words[i] = word_variables(import, words[i]);
    }
    *out_words = words;
    *out_count = count;
    return true;
}

/* The condition as one text; data NULL: unsupported. */
static struct str condition_text(struct import *import, const struct nginx_directive *directive)
{
    struct str *words;
    size_t count;

    return condition_words(import, directive, &words, &count) ? words_join(import, words, count)
                                                              : (struct str){NULL, 0};
}

/* True if a location of the block rewrites, at any depth. */
static bool rewrites_below(const struct nginx_directive *block)
{
    for (const struct nginx_directive *child = block->first; child; child = child->next) {
        if (directive_is(child, "location") && (find_live(child, "rewrite") || rewrites_below(child)))
            return true;
    }
    return false;
}

/* Carries over the body of the condition. A location's rewrites must not run before a return. */
static void carry_condition(struct import *import, const struct scope *scope,
                            const struct nginx_directive *directive, const char *below, struct str condition)
{
    struct yaml_builder *conditions = yaml_builder_open(import->arena, scope->map, YAML_BUILDER_MAP, str_from(below));
    struct yaml_builder *body;

    if (yaml_builder_find(conditions, condition)) {
        import_leave_out(import, conditions, directive, "the same condition stands above: write both under it");
        return;
    }
    body = yaml_builder_add(import->arena, conditions, YAML_BUILDER_MAP, condition, directive);
    if (str_equal(directive->name, STR("limit_except")) && find_live(scope->block, "rewrite"))
        yaml_builder_add(import->arena, body, YAML_BUILDER_LIST, STR("rewrite"),
                         directive); /* nginx runs none for those methods */
    if (find_live(directive, "return") && !find_live(directive, "rewrite")) {
        if (rewrites_below(scope->block) || (scope->kind == SCOPE_LOCATION && find_live(scope->block, "rewrite")))
            yaml_builder_add(import->arena, body, YAML_BUILDER_LIST, STR("rewrite"), directive);
    }
    if (scope->kind != SCOPE_LOCATION && find_live(scope->block, "rewrite") &&
        (find_live(directive, "return") || find_live(directive, "rewrite")))
        import_add_note(import, IMPORT_CHANGED, directive, "rewrite of the server comes before this here");
    if (scope->kind == SCOPE_SERVER && find_live(directive, "return") && has_rules_of_access(scope))
        import_add_note(import, IMPORT_CHANGED, directive,
                        "access rules are checked before return here, and after it in nginx");
    carry_scope(import, scope, SCOPE_LOCATION, directive, body);
    if (rewrite_before(scope, directive))
        import_add_note(import, IMPORT_CHANGED, directive, "it is asked before the rewrite in line %u here",
                        rewrite_before(scope, directive)->place.line);
    if (!body_ends(directive) && nginx_tree_find(scope->block, STR("try_files")))
        import_add_note(import, IMPORT_CHANGED, directive,
                        "nginx forgets try_files where this holds, and sluice does not");
    if (find_live(scope->block, "location") && scope->kind == SCOPE_LOCATION)
        import_add_note(import, IMPORT_CHANGED, directive, "it holds in the locations inside this one, too");
}

void carry_if(struct import *import, const struct scope *scope, const struct nginx_directive *directive,
              const struct rule *rule)
{
    const char *why = directive->sets ? NULL : why_unsafe(scope, directive);
    struct str condition = why ? STR("") : condition_text(import, directive);

    if (why)
        import_leave_out(import, scope->map, directive, "%s", why);
    else if (directive->sets)
        carry_set_if(import, scope, directive);
    else if (!condition.data)
        import_leave_out(import, scope->map, directive,
                         "there is no such condition: $name, =, !=, ~, ~*, -f, -d and -e are");
    else
        carry_condition(import, scope, directive, "when", condition);
}

void carry_limit_except(struct import *import, const struct scope *scope,
                        const struct nginx_directive *directive, const struct rule *rule)
{
    if (directive->count == 0) {
        import_leave_out(import, scope->map, directive, "it names no method");
        return;
    }
    carry_condition(import, scope, directive, "limit_except",
                    words_join(import, directive->words, directive->count));
    for (const struct scope *outer = scope; outer && outer->kind == SCOPE_LOCATION; outer = outer->outer) {
        if (find_live(outer->block, "if")) {
            import_add_note(import, IMPORT_CHANGED, directive, "no if holds for the other methods here");
            return;
        }
    }
}
