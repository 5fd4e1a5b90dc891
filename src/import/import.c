/*
 * One import: reads nginx's file, prints the YAML, lists the notes, and omits the directives that the loader rejects.
 * import_rules.c selects the translation of each directive.
 */
#include "import/import.h"

#include "import/import_scope.h"

#include <errno.h>

/* The prefix of relative paths: that of Debian and most packages, of nginx's "make install", or the file's folder. */
static struct str find_prefix(struct import *import, struct str directory)
{
    if (str_ends(directory, STR("/conf")))
        return nginx_directory(directory);
    return str_equal(directory, STR("/etc/nginx")) ? STR("/usr/share/nginx") : directory;
}

int import_read(struct arena *arena, const struct import_source *source, struct import **out_import,
                struct nginx_fault *out_fault)
{
    struct import *import = arena_zalloc(arena, 1, sizeof(*import));
    int error;

    if (!import)
        return -ENOMEM;
    *import = (struct import){
        .arena = arena, .source = source, .rules = import_rules, .directory = nginx_directory(source->path)};
    import->prefix = str_empty(source->prefix) ? find_prefix(import, import->directory) : source->prefix;
    error = nginx_tree_read(arena, source->files, source->path, &import->root, out_fault);
    if (error < 0)
        return error;
    import->root_builder = import->main = yaml_builder_root(arena);
    if (import->root_builder)
        import->root_builder->comments_below = import->root->comments_below;
    translate_scope(import, NULL, SCOPE_MAIN, import->root, import->root_builder);
    if (import->out_of_memory)
        return -ENOMEM;
    *out_import = import;
    return 0;
}

static bool has_server(const struct yaml_builder *protocol)
{
    const struct yaml_builder *servers =
        protocol && !protocol->omitted ? yaml_builder_find(protocol, STR("server")) : NULL;

    return servers && yaml_builder_has_output(servers);
}

bool import_has_server(const struct import *import)
{
    return has_server(yaml_builder_find(import->root_builder, STR("http"))) ||
           has_server(yaml_builder_find(import->root_builder, STR("stream")));
}

/* Omits http or stream if it has no server and would not load; adds a note if nginx's file has servers in it. */
static void omit_empty(struct import *import, const char *name)
{
    struct yaml_builder *protocol = yaml_builder_find(import->root_builder, str_from(name));

    if (!protocol || protocol->omitted || has_server(protocol) || !protocol->origin)
        return;
    protocol->omitted = true;
    import_add_note(import, IMPORT_OMITTED, protocol->origin, "no server in it could be carried over");
}

int import_print(struct import *import, bool list, struct buffer *out)
{
    int error;

    omit_empty(import, "http");
    omit_empty(import, "stream");
    error =
        buffer_printf(out, "# Converted from " STR_FMT " by sluice import.\n", STR_ARG(import->source->path));

    if (error == 0)
        error = yaml_builder_print(import->root_builder, out);
    if (error == 0 && list && import->notes)
        error = buffer_append(out, STR("\n"));
    return error == 0 && list ? import_list(import, "# ", out) : error;
}

/* True for directives whose file the loader opens, since the file may exist on another machine only. */
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
        if (known->kind == IMPORT_FILE_MISSING && known->place.line == directive->place.line &&
            str_equal(known->place.file, directive->place.file))
            return true;
    }
    return false;
}

/* True for a directive without which its stream server does not load. */
static bool is_needed(const struct yaml_builder *builder)
{
    struct str name = builder->origin->name;

    return builder->parent && builder->parent->scope == SCOPE_STREAM_SERVER &&
           (str_equal(name, STR("proxy_pass")) || str_equal(name, STR("return")));
}

/*
 * The unit that is omitted because of a builder: for a line of a map or geo the whole table, since its variable would
 * be wrong without the line; for a directive that a stream server needs, the server; else the builder.
 */
static struct yaml_builder *enclosing_unit(struct yaml_builder *builder)
{
    const struct nginx_directive *table = builder->parent ? builder->parent->origin : NULL;

    if (table && (str_equal(table->name, STR("map")) || str_equal(table->name, STR("geo"))))
        return builder->parent;
    return is_needed(builder) ? builder->parent : builder;
}

/*
 * True for a map that replaces an `if`. Without it the `set` that uses its variable is lost; the placeholder is in the
 * scope of that `set`.
 */
static bool replaces_if(const struct yaml_builder *builder)
{
    return builder->origin && str_equal(builder->origin->name, STR("set")) && builder->kind == YAML_BUILDER_MAP;
}

int import_reject(struct import *import, unsigned line, struct str why)
{
    struct yaml_builder *builder = yaml_builder_at(import->root_builder, line);
    struct str reason = arena_copy(import->arena, why);

    /* All of http or stream cannot be omitted: nothing would be left. */
    if (!builder || (builder->parent == import->root_builder && builder->kind != YAML_BUILDER_TEXT))
        return -ENOENT;
    import->out_of_memory |= !reason.data;
    if (!names_file(builder->origin->name)) {
        const struct nginx_directive *lost = builder->origin;

        builder = enclosing_unit(builder);
        builder->omitted = true;
        if (replaces_if(builder))
            import_add_note(import, IMPORT_OMITTED, lost, STR_FMT, STR_ARG(reason));
        else if (builder->scope == SCOPE_STREAM_SERVER)
            import_add_note(import, IMPORT_OMITTED, lost, STR_FMT, STR_ARG(reason)); /* the server listens nowhere */
        else
            import_add_loss(import, builder->parent, lost, reason);
    } else if (!is_noted(import, builder->origin)) {
        import_add_note(import, IMPORT_FILE_MISSING, builder->origin, STR_FMT, STR_ARG(reason));
    }
    return import->out_of_memory ? -ENOMEM : builder->omitted;
}

const struct import_note *import_notes(const struct import *import)
{
    return import->notes;
}

size_t import_count(const struct import *import, enum import_note_kind kind)
{
    size_t count = 0;

    for (const struct import_note *known = import->notes; known; known = known->next)
        count += known->kind == kind;
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
        error = yaml_builder_print_text(out, known->directive);
    if (error == 0)
        error = buffer_printf(out, "\n%s      ", margin);
    if (error == 0)
        error = yaml_builder_print_text(out, known->reason);
    return error == 0 ? buffer_append(out, STR("\n")) : error;
}

int import_list(const struct import *import, const char *margin, struct buffer *out)
{
    static const char *const heads[IMPORT_NOTE_KINDS] = {
        [IMPORT_OMITTED] = "not carried over",
        [IMPORT_CHANGED] = "carried over, with another meaning here",
        [IMPORT_FILE_MISSING] = "carried over, but it does not load on this machine",
        [IMPORT_UNNEEDED] = "not carried over, because it is not needed",
    };
    int error = 0;

    for (unsigned kind = 0; kind < IMPORT_NOTE_KINDS && error == 0; kind++) {
        size_t count = import_count(import, kind);

        if (count)
            error = buffer_printf(out, "%s%s (%zu):\n", margin, heads[kind], count);
        for (const struct import_note *known = import->notes; known && error == 0; known = known->next) {
            if (known->kind == kind)
                error = print_note(known, margin, out);
        }
    }
    return error;
}
