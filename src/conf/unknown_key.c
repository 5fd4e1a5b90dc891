/*
 * Corrections of unknown keys: the scopes in which a word is allowed, the alternative of a directive of nginx, nginx's
 * form of a block, and the most similar name.
 */
#include "conf/unknown_key.h"

#include "conf/conf_vocabulary.h"

/* "http, server or location". */
static struct str scopes_text(struct conf_reader *reader, unsigned scopes)
{
    struct str text = STR("");
    unsigned left = scopes;

    for (unsigned scope = SCOPE_MAIN; left; scope <<= 1) {
        if (!(left & scope))
            continue;
        left &= ~scope;
        text = conf_hint(reader->errors, STR_FMT "%s%s", STR_ARG(text), !text.length ? "" : left ? ", " : " or ",
                         conf_scope_name((enum conf_scope)scope));
    }
    return text;
}

/* The scopes in which a word is allowed, as far as this build has them. */
static unsigned scopes_of(const struct conf_schema *schema, struct str name)
{
    unsigned scopes = vocabulary_blocks(name) & (conf_schema_scopes(schema) | SCOPE_MAIN);

    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct directive *directives = schema->groups[slot]->directives;

        for (size_t i = 0; directives && directives[i].name; i++) {
            if (str_equal(name, str_from(directives[i].name)))
                scopes |= directives[i].scopes;
        }
    }
    return scopes;
}

struct suggestion {
    struct str wanted;
    const char *name;
    size_t distance; /* twice the edit distance, plus one for a name of another scope */
};

static void suggestion_try(struct suggestion *suggestion, const char *name, bool here)
{
    size_t distance = 2 * str_distance(suggestion->wanted, str_from(name)) + !here;

    if (distance < suggestion->distance) {
        suggestion->distance = distance;
        suggestion->name = name;
    }
}

static const char *suggest_name(const struct conf_schema *schema, enum conf_scope scope, struct str wanted)
{
    struct suggestion suggestion = {wanted, NULL, 2 * (wanted.length / 3 + 1) + 2};
    const struct block_word *block;

    if (wanted.length > 64)
        return NULL;
    for (size_t slot = 0; slot < schema->count; slot++) {
        const struct directive *directives = schema->groups[slot]->directives;

        for (size_t i = 0; directives && directives[i].name; i++)
            suggestion_try(&suggestion, directives[i].name, directives[i].scopes & scope);
    }
    for (size_t i = 0; (block = vocabulary_block(i)); i++) {
        if (scopes_of(schema, str_from(block->name)))
            suggestion_try(&suggestion, block->name, block->allowed_in & scope);
    }
    return suggestion.name;
}

/* The first word of nginx's syntax of a block: "location /", "map $a $b", "if ($a)"; empty: there is one word only. */
static struct str block_of_key(struct str key)
{
    ssize_t space = str_find(key, ' ');

    return space > 0 ? str_slice(key, 0, (size_t)space) : STR("");
}

/* Classifies `*name` or, if that is unknown, its first word, and sets `*name` to what was classified. */
static enum vocabulary_word classify_key(const struct conf_schema *schema, struct str *name, struct str *out_hint)
{
    enum vocabulary_word word = vocabulary_find(schema, *name, out_hint);
    struct str block = block_of_key(*name);

    if (word != VOCABULARY_UNKNOWN || str_empty(block))
        return word;
    word = vocabulary_find(schema, block, out_hint);
    if (word != VOCABULARY_UNKNOWN)
        *name = block;
    return word;
}

/* The correction of a key that neither sluice nor nginx has. */
static struct str find_correction(struct conf_reader *reader, const struct conf_schema *schema, enum conf_scope scope,
                                  struct str key)
{
    struct str block = block_of_key(key);
    const char *suggestion;
    unsigned scopes;

    if (!str_empty(block) && scopes_of(schema, block))
        return conf_hint(reader->errors, "write '" STR_FMT ":', and below it, indented, '" STR_FMT ":'", STR_ARG(block),
                         STR_ARG(str_trim(str_skip(key, block.length))));
    suggestion = scopes_of(schema, key) ? NULL : suggest_name(schema, scope, key);
    if (!suggestion)
        return STR("sluice help NAME describes a directive; sluice help lists all directives");
    scopes = scopes_of(schema, str_from(suggestion));
    if (scopes & scope)
        return conf_hint(reader->errors, "did you mean '%s'?", suggestion);
    return conf_hint(reader->errors, "did you mean '%s', which is allowed in " STR_FMT "?", suggestion,
                     STR_ARG(scopes_text(reader, scopes)));
}

void key_reject(struct conf_reader *reader, const struct conf_schema *schema, enum conf_scope scope,
                const struct conf_node *key)
{
    const char *here = conf_scope_name(scope);
    unsigned scopes = scopes_of(schema, key->text);
    struct str instead, name = key->text;
    enum vocabulary_word word = classify_key(schema, &name, &instead);

    if (scopes && !(scopes & scope))
        conf_error(reader->errors, key->mark,
                   conf_hint(reader->errors, "it is allowed in " STR_FMT, STR_ARG(scopes_text(reader, scopes))),
                   "'" STR_FMT "' is not allowed in %s", STR_ARG(key->text), here);
    else if (word != VOCABULARY_UNKNOWN)
        conf_error(reader->errors, key->mark, instead,
                   word == VOCABULARY_LEFT_OUT ? "'" STR_FMT "' is not in this build of sluice"
                                               : "'" STR_FMT "' is not supported by sluice",
                   STR_ARG(name));
    else
        conf_error(reader->errors, key->mark, find_correction(reader, schema, scope, key->text),
                   "unknown directive '" STR_FMT "' in %s", STR_ARG(key->text), here);
}
