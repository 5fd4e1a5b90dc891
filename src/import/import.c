/*
 * One import, from the file to the text: the walk over nginx's blocks, the notes, and the loader's objections. The
 * translation of each directive is in import_rules.c.
 */
#include "import/import.h"

#include "conf/conf_vocabulary.h"
#include "import/import_scope.h"

#include <errno.h>
#include <stdarg.h>

static void add_note(struct import *import, enum import_verdict verdict,
                     const struct nginx_directive *directive, struct str why)
{
    struct import_note *made = arena_zalloc(import->arena, 1, sizeof(*made));
    struct import_note **at = &import->notes;

    if (!made || !why.data) {
        import->out_of_memory = true;
        return;
    }
    *made = (struct import_note){.verdict = verdict, .place = directive->place, .why = why};
    made->what = nginx_tree_line(import->arena, directive);
    import->out_of_memory |= !made->what.data;
    /* sorted by line among notes of one file */
    while (*at && !(str_equal((*at)->place.file, made->place.file) && (*at)->place.line > made->place.line))
        at = &(*at)->next;
    made->next = *at;
    *at = made;
}

void import_add_note(struct import *import, enum import_verdict verdict, const struct nginx_directive *directive,
                     const char *why, ...)
{
    struct str text;
    va_list args;

    va_start(args, why);
    text = arena_vprintf(import->arena, why, args);
    va_end(args);
    add_note(import, verdict, directive, text);
}

/*
 * Notes a directive that is not carried over, and adds a 503 mark where one is needed, which the note mentions
 * first.
 */
static void add_loss_note(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive,
                          struct str why)
{
    import->out_of_memory |= !why.data;
    if (mark_loss(import, map, directive) ||
        (str_equal(directive->name, STR("listen")) && mark_unbound(import, map, directive)))
        why = words_print(import, "503 IS ANSWERED UNTIL IT IS REPLACED: " STR_FMT, STR_ARG(why));
    add_note(import, IMPORT_LEFT_OUT, directive, why);
}

void import_comment_out(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive)
{
    struct yaml_builder *comment =
        yaml_builder_add(import->arena, map, YAML_BUILDER_TEXT, (struct str){NULL, 0}, directive);

    if (comment)
        comment->left_out = true;
    import->out_of_memory |= !comment;
}

void import_leave_out(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive,
                      const char *why, ...)
{
    struct str text;
    va_list args;

    va_start(args, why);
    text = arena_vprintf(import->arena, why, args);
    va_end(args);
    import_comment_out(import, map, directive);
    add_loss_note(import, map, directive, text);
}

struct yaml_builder *import_put(struct import *import, struct yaml_builder *map, const char *key, struct str text,
                                const struct nginx_directive *directive)
{
    struct yaml_builder *made;

    if (yaml_builder_find(map, str_from(key))) {
        if (directive)
            import_leave_out(import, map, directive, "it stands here twice");
        return NULL;
    }
    made = yaml_builder_add(import->arena, map, YAML_BUILDER_TEXT, str_from(key), directive);
    if (made)
        made->text = text;
    import->out_of_memory |= !made;
    return made;
}

struct yaml_builder *import_put_item(struct import *import, struct yaml_builder *map, const char *key, struct str text,
                                     const struct nginx_directive *directive)
{
    struct yaml_builder *list = yaml_builder_open(import->arena, map, YAML_BUILDER_LIST, str_from(key));
    struct yaml_builder *made =
        yaml_builder_add(import->arena, list, YAML_BUILDER_TEXT, (struct str){NULL, 0}, directive);

    if (made)
        made->text = text;
    import->out_of_memory |= !made;
    return made;
}

const struct directive *own_directive(const struct import *import, struct str name, unsigned scopes)
{
    const struct conf_schema *schema = import->source->schema;

    for (size_t i = 0; i < schema->count; i++) {
        for (const struct directive *own = schema->groups[i]->directives; own && own->name; own++) {
            if ((own->scopes & scopes) && str_equal(str_from(own->name), name))
                return own;
        }
    }
    return NULL;
}

struct str why_missing(const struct import *import, struct str name)
{
    struct str hint;

    switch (vocabulary_find(import->source->schema, name, &hint)) {
    case VOCABULARY_UNSUPPORTED:
        return hint;
    case VOCABULARY_LEFT_OUT:
        return STR("it is not in this build of sluice");
    case VOCABULARY_UNKNOWN:
        break;
    }
    return (struct str){NULL, 0};
}

/* Handles a directive without a rule and without a directive of the same name in this scope. */
static void carry_unknown(struct import *import, const struct scope *scope,
                          const struct nginx_directive *directive)
{
    const struct directive *elsewhere = own_directive(import, directive->name, ~0u);
    struct str why = why_missing(import, directive->name);

    if (str_equal(directive->name, STR("include")))
        import_leave_out(import, scope->map, directive, "there is no such file to read");
    else if (elsewhere)
        import_leave_out(import, scope->map, directive, "in sluice it is not allowed in %s",
                         conf_scope_name(scope->kind));
    else if (why.data)
        import_leave_out(import, scope->map, directive, STR_FMT, STR_ARG(why));
    else
        import_leave_out(import, scope->map, directive, "sluice has nothing of that name");
}

void carry_directive(struct import *import, const struct scope *scope,
                     const struct nginx_directive *directive)
{
    const struct rule *rule = rule_find(directive->name, scope->kind);

    if (directive->dead)
        return;
    if (rule)
        rule->carry(import, scope, directive, rule);
    else if (own_directive(import, directive->name, scope->kind) && !directive->block)
        carry_own(import, scope, directive, NULL);
    else
        carry_unknown(import, scope, directive);
}

/* The order of output: plain directives, then conditions and groups of servers, then blocks. */
static unsigned directive_rank(const struct nginx_directive *directive)
{
    static const char *const late[] = {"if", "limit_except", "upstream", "server", "location"};

    for (unsigned i = 0; directive->block && !directive->sets && i < sizeof(late) / sizeof(late[0]); i++) {
        if (str_equal(directive->name, str_from(late[i])))
            return i < 2 ? 1 : i < 3 ? 2 : 3;
    }
    return 0;
}

void carry_scope(struct import *import, const struct scope *outer, enum conf_scope kind,
                 const struct nginx_directive *block, struct yaml_builder *map)
{
    const struct scope scope = {.kind = kind,
                                .outer = outer,
                                .block = block,
                                .map = map,
                                .condition = outer && outer->kind != SCOPE_HTTP && kind == SCOPE_LOCATION &&
                                             !str_equal(block->name, STR("location"))};

    if (!map) {
        import->out_of_memory = true;
        return;
    }
    map->scope = kind;
    check_order(import, &scope);
    check_inheritance(import, &scope);
    for (unsigned turn = 0; turn < 4; turn++) {
        for (const struct nginx_directive *child = block->first; child; child = child->next) {
            if (directive_rank(child) == turn)
                carry_directive(import, &scope, child);
        }
    }
}

/* The layout of Debian and most packages, that of nginx's "make install", or the directory of the file. */
static struct str find_prefix(struct import *import, struct str folder)
{
    if (str_ends(folder, STR("/conf")))
        return nginx_folder(folder);
    return str_equal(folder, STR("/etc/nginx")) ? STR("/usr/share/nginx") : folder;
}

int import_read(struct arena *arena, const struct import_source *source, struct import **out_import,
                struct nginx_fault *out_fault)
{
    struct import *import = arena_zalloc(arena, 1, sizeof(*import));
    int error;

    if (!import)
        return -ENOMEM;
    *import = (struct import){.arena = arena, .source = source, .folder = nginx_folder(source->path)};
    import->prefix = str_empty(source->prefix) ? find_prefix(import, import->folder) : source->prefix;
    error = nginx_tree_read(arena, source->files, source->path, &import->root, out_fault);
    if (error < 0)
        return error;
    import->root_builder = import->main = yaml_builder_root(arena);
    if (import->root_builder)
        import->root_builder->after = import->root->after;
    carry_scope(import, NULL, SCOPE_MAIN, import->root, import->root_builder);
    if (import->out_of_memory)
        return -ENOMEM;
    *out_import = import;
    return 0;
}

static bool has_server(const struct yaml_builder *protocol)
{
    const struct yaml_builder *servers =
        protocol && !protocol->left_out ? yaml_builder_find(protocol, STR("server")) : NULL;

    return servers && yaml_builder_has_output(servers);
}

bool import_serves(const struct import *import)
{
    return has_server(yaml_builder_find(import->root_builder, STR("http"))) ||
           has_server(yaml_builder_find(import->root_builder, STR("stream")));
}

/* http or stream without a server does not load; if nginx's file has servers, they were lost. */
static void leave_out_empty(struct import *import, const char *name)
{
    struct yaml_builder *protocol = yaml_builder_find(import->root_builder, str_from(name));

    if (!protocol || protocol->left_out || has_server(protocol) || !protocol->origin)
        return;
    protocol->left_out = true;
    import_add_note(import, IMPORT_LEFT_OUT, protocol->origin, "no server in it could be carried over");
}

int import_print(struct import *import, bool list, struct buffer *out)
{
    int error;

    leave_out_empty(import, "http");
    leave_out_empty(import, "stream");
    error =
        buffer_printf(out, "# Made of " STR_FMT " by sluice import.\n", STR_ARG(import->source->path));

    if (error == 0)
        error = yaml_builder_print(import->root_builder, out);
    if (error == 0 && list && import->notes)
        error = buffer_append(out, STR("\n"));
    return error == 0 && list ? import_list(import, "# ", out) : error;
}

/* Directives whose file the loader opens; it may exist on another machine only. */
static bool names_file(struct str name)
{
    static const char *const ends[] = {"certificate", "certificate_key", "_crl",     "password_file",
                                       "ticket_key",  "dhparam",         "user_file"};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (str_ends(name, str_from(ends[i])))
            return true;
    }
    return false;
}

static bool is_noted(const struct import *import, const struct nginx_directive *directive)
{
    for (const struct import_note *known = import->notes; known; known = known->next) {
        if (known->verdict == IMPORT_ABSENT && known->place.line == directive->place.line &&
            str_equal(known->place.file, directive->place.file))
            return true;
    }
    return false;
}

/* True for a text that its stream server needs to load. */
static bool is_needed(const struct yaml_builder *builder)
{
    struct str name = builder->origin->name;

    return builder->parent && builder->parent->scope == SCOPE_STREAM_SERVER &&
           (str_equal(name, STR("proxy_pass")) || str_equal(name, STR("return")));
}

/*
 * The largest unit to leave out with a builder: for a line of a map or geo the whole table, whose variable would be
 * wrong otherwise; for a directive that a stream server needs, the server.
 */
static struct yaml_builder *enclosing_unit(struct yaml_builder *builder)
{
    const struct nginx_directive *table = builder->parent ? builder->parent->origin : NULL;

    if (table && (str_equal(table->name, STR("map")) || str_equal(table->name, STR("geo"))))
        return builder->parent;
    return is_needed(builder) ? builder->parent : builder;
}

/*
 * True for a map that replaces an `if`: without it the `set` that uses its variable is lost, and the mark belongs
 * there.
 */
static bool is_made_of_if(const struct yaml_builder *builder)
{
    return builder->origin && str_equal(builder->origin->name, STR("set")) && builder->kind == YAML_BUILDER_MAP;
}

int import_refuse(struct import *import, unsigned line, struct str why)
{
    struct yaml_builder *builder = yaml_builder_at(import->root_builder, line);
    struct str kept = arena_copy(import->arena, why);

    /* Leaving out all of http or stream would leave nothing. */
    if (!builder || (builder->parent == import->root_builder && builder->kind != YAML_BUILDER_TEXT))
        return -ENOENT;
    if (!names_file(builder->origin->name)) {
        const struct nginx_directive *lost = builder->origin;

        builder = enclosing_unit(builder);
        builder->left_out = true;
        if (is_made_of_if(builder))
            add_note(import, IMPORT_LEFT_OUT, lost, kept);
        else if (builder->scope == SCOPE_STREAM_SERVER)
            add_note(import, IMPORT_LEFT_OUT, lost, kept); /* the server listens nowhere */
        else
            add_loss_note(import, builder->parent, lost, kept);
    } else if (!is_noted(import, builder->origin)) {
        add_note(import, IMPORT_ABSENT, builder->origin, kept);
    }
    return import->out_of_memory ? -ENOMEM : builder->left_out;
}

const struct import_note *import_notes(const struct import *import)
{
    return import->notes;
}

size_t import_count(const struct import *import, enum import_verdict verdict)
{
    size_t count = 0;

    for (const struct import_note *known = import->notes; known; known = known->next)
        count += known->verdict == verdict;
    return count;
}

static int print_note(const struct import_note *known, const char *margin, struct buffer *out)
{
    int error = buffer_printf(out, "%s  ", margin);

    if (error == 0)
        error = yaml_builder_print_text(out, known->place.file);
    if (error == 0)
        error = buffer_printf(out, ":%u: ", known->place.line);
    if (error == 0)
        error = yaml_builder_print_text(out, known->what);
    if (error == 0)
        error = buffer_printf(out, "\n%s      ", margin);
    if (error == 0)
        error = yaml_builder_print_text(out, known->why);
    return error == 0 ? buffer_append(out, STR("\n")) : error;
}

int import_list(const struct import *import, const char *margin, struct buffer *out)
{
    static const char *const heads[IMPORT_VERDICTS] = {
        [IMPORT_LEFT_OUT] = "not carried over",
        [IMPORT_CHANGED] = "carried over, with another meaning here",
        [IMPORT_ABSENT] = "carried over, but not as it should be on this machine",
        [IMPORT_NEEDLESS] = "not carried over, as it is not needed here",
    };
    int error = 0;

    for (unsigned verdict = 0; verdict < IMPORT_VERDICTS && error == 0; verdict++) {
        size_t count = import_count(import, verdict);

        if (count)
            error = buffer_printf(out, "%s%s (%zu):\n", margin, heads[verdict], count);
        for (const struct import_note *known = import->notes; known && error == 0; known = known->next) {
            if (known->verdict == verdict)
                error = print_note(known, margin, out);
        }
    }
    return error;
}
