/*
 * Functions for rules that add keys and items to the YAML, directives as comments, and notes.
 */
#include "import/import_scope.h"

#include <stdarg.h>

static void add_note(struct import *import, enum import_note_kind kind,
                     const struct nginx_directive *directive, struct str why)
{
    struct import_note *made = arena_zalloc(import->arena, 1, sizeof(*made));
    struct import_note **at = &import->notes;

    if (!made || !why.data) {
        import->out_of_memory = true;
        return;
    }
    *made = (struct import_note){.kind = kind, .place = directive->place, .reason = why};
    made->directive = nginx_tree_line(import->arena, directive);
    import->out_of_memory |= !made->directive.data;
    /* The notes of one file are sorted by line. */
    while (*at && !(str_equal((*at)->place.file, made->place.file) && (*at)->place.line > made->place.line))
        at = &(*at)->next;
    made->next = *at;
    *at = made;
}

void import_add_note(struct import *import, enum import_note_kind kind, const struct nginx_directive *directive,
                     const char *why, ...)
{
    struct str text;
    va_list args;

    va_start(args, why);
    text = arena_vprintf(import->arena, why, args);
    va_end(args);
    add_note(import, kind, directive, text);
}

void import_add_loss(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive,
                     struct str why)
{
    import->out_of_memory |= !why.data;
    if (add_loss_placeholder(import, map, directive) ||
        (str_equal(directive->name, STR("listen")) && add_listen_placeholder(import, map, directive)))
        why = words_print(import, "ANSWERED WITH 503 UNTIL IT IS REPLACED: " STR_FMT, STR_ARG(why));
    add_note(import, IMPORT_OMITTED, directive, why);
}

void import_comment_out(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive)
{
    struct yaml_builder *comment =
        yaml_builder_add(import->arena, map, YAML_BUILDER_TEXT, (struct str){NULL, 0}, directive);

    if (comment)
        comment->omitted = true;
    import->out_of_memory |= !comment;
}

void import_omit(struct import *import, struct yaml_builder *map, const struct nginx_directive *directive,
                 const char *why, ...)
{
    struct str text;
    va_list args;

    va_start(args, why);
    text = arena_vprintf(import->arena, why, args);
    va_end(args);
    import_comment_out(import, map, directive);
    import_add_loss(import, map, directive, text);
}

struct yaml_builder *import_put(struct import *import, struct yaml_builder *map, const char *key, struct str text,
                                const struct nginx_directive *directive)
{
    struct yaml_builder *made;

    if (yaml_builder_find(map, str_from(key))) {
        if (directive)
            import_omit(import, map, directive, "it is a duplicate");
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
