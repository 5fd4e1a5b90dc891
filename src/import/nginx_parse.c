/*
 * Builds the tree from tokens: blocks, included files, and comments. A comment on the line of a directive belongs to
 * it; others belong to the following directive or to the end of their block.
 */
#include "import/nginx_tree.h"

#include "base/buffer.h"
#include "base/limits.h"
#include "import/nginx_lex.h"

#include <errno.h>

struct parser {
    struct arena *arena;
    const struct nginx_files *files;
    struct str directory; /* of the main file: includes are relative to it */
    struct nginx_fault *fault;
    struct buffer comments; /* comments without a following directive so far */
    unsigned depth, read, directives;
};

/* One file being parsed. */
struct source {
    struct parser *parser;
    struct nginx_lexer lexer;
    struct str path;
    struct nginx_directive *latest; /* a comment on its line belongs to it */
    unsigned latest_line;
};

static int parse_file(struct parser *parser, struct str path, struct nginx_directive *into);

static int parse_fail(struct source *source, unsigned line, const char *message)
{
    *source->parser->fault = (struct nginx_fault){{source->path, line}, str_from(message)};
    return -EINVAL;
}

static int next_token(struct source *source, struct nginx_token *token)
{
    int error = nginx_lexer_next(&source->lexer, token);

    return error == -EINVAL ? parse_fail(source, source->lexer.line, source->lexer.fault) : error;
}

/* Moves the pending comments to the arena. */
static int attach_comments(struct parser *parser, struct str *out_text)
{
    if (parser->comments.length == 0)
        return 0;
    *out_text =
        arena_copy(parser->arena, str_slice(buffer_str(&parser->comments), 0, parser->comments.length - 1));
    buffer_consume(&parser->comments, parser->comments.length);
    return out_text->data ? 0 : -ENOMEM;
}

static int attach_comment(struct source *source, const struct nginx_token *token)
{
    struct nginx_directive *latest = source->latest;

    if (latest && source->latest_line == token->line && !latest->comment_beside.data) {
        latest->comment_beside = token->text;
        return 0;
    }
    if (buffer_append(&source->parser->comments, token->text) < 0)
        return -ENOMEM;
    return buffer_append(&source->parser->comments, STR("\n")) < 0 ? -ENOMEM : 0;
}

static int add_word(struct source *source, struct buffer *words, const struct nginx_token *token)
{
    if (words->length >= LIMIT_IMPORT_WORDS * sizeof(token->text))
        return parse_fail(source, token->line, "a directive has too many words");
    return buffer_append(words, str_of((const char *)&token->text, sizeof(token->text))) < 0 ? -ENOMEM : 0;
}

/* Parses words up to ';' or '{'. */
static int words_parse(struct source *source, struct nginx_directive *made)
{
    struct buffer words = {0};
    struct nginx_token token;
    int error;

    while ((error = next_token(source, &token)) == 0) {
        if (token.kind == NGINX_WORD)
            error = add_word(source, &words, &token);
        else if (token.kind == NGINX_COMMENT)
            error = attach_comment(source, &token);
        else
            break;
        if (error < 0)
            break;
    }
    if (error == 0 && token.kind == NGINX_CLOSE)
        error = parse_fail(source, token.line, "\"}\" where \";\" is missing");
    if (error == 0 && token.kind == NGINX_END_OF_FILE)
        error = parse_fail(source, made->place.line, "the file ends within this directive");
    if (error == 0) {
        made->block = token.kind == NGINX_OPEN;
        made->count = words.length / sizeof(struct str);
        made->words = arena_alloc(source->parser->arena, words.length + 1);
        error = made->words ? 0 : -ENOMEM;
    }
    if (error == 0 && words.length)
        memcpy(made->words, words.data, words.length);
    source->latest = made;
    source->latest_line = token.line;
    buffer_finish(&words);
    return error;
}

static void append_directive(struct nginx_directive *block, struct nginx_directive *made)
{
    if (block->last)
        block->last->next = made;
    else
        block->first = made;
    block->last = made;
}

static bool is_absolute(struct str path)
{
    return str_starts(path, STR("/"));
}

/* Replaces the directive by the matching files. -ENOENT: a name without wildcards does not exist. */
static int include_parse(struct source *source, const struct nginx_directive *made,
                         struct nginx_directive *into)
{
    struct parser *parser = source->parser;
    struct str pattern = made->words[0];
    struct str *paths = NULL;
    size_t count = 0;
    int error;

    if (!is_absolute(pattern))
        pattern = arena_printf(parser->arena, STR_FMT "/" STR_FMT, STR_ARG(parser->directory), STR_ARG(pattern));
    if (!pattern.data)
        return -ENOMEM;
    error = parser->files->match(parser->files->owner, parser->arena, pattern, &paths, &count);
    if (error == 0 && count == 0 && str_find(pattern, '*') < 0 && str_find(pattern, '?') < 0 &&
        str_find(pattern, '[') < 0)
        error = -ENOENT;
    if (error < 0)
        return error == -ENOMEM ? error : -ENOENT;
    for (size_t i = 0; i < count && error == 0; i++) {
        error = parse_file(parser, paths[i], into);
        if (error == -ELOOP)
            error = parse_fail(source, made->place.line,
                               "includes are nested too deeply, or there are too many of them");
    }
    return error;
}

static int block_parse(struct source *source, struct nginx_directive *into, unsigned opened);

/* Skips the code of content_by_lua_block and similar, which is not in nginx's language. */
static int lua_skip(struct source *source)
{
    int error = nginx_lexer_skip_lua(&source->lexer);

    return error == -EINVAL ? parse_fail(source, source->lexer.line, source->lexer.fault) : error;
}

/* Parses a directive whose name is `token`. */
static int directive_parse(struct source *source, const struct nginx_token *token,
                           struct nginx_directive *into)
{
    struct parser *parser = source->parser;
    struct nginx_directive *made = arena_zalloc(parser->arena, 1, sizeof(*made));
    int error;

    if (!made)
        return -ENOMEM;
    if (++parser->directives > LIMIT_IMPORT_DIRECTIVES)
        return parse_fail(source, token->line, "there are too many directives");
    made->name = token->text;
    made->place = (struct nginx_place){source->path, token->line};
    error = attach_comments(parser, &made->comments_above);
    if (error == 0)
        error = words_parse(source, made);
    if (error == 0 && !made->block && made->count == 1 && str_equal(made->name, STR("include"))) {
        /* Comments above an include move above its contents. */
        if (made->comments_above.data &&
            buffer_printf(&parser->comments, STR_FMT "\n", STR_ARG(made->comments_above)) < 0)
            return -ENOMEM;
        error = include_parse(source, made, into);
        if (error != -ENOENT)
            return error;
        buffer_consume(&parser->comments, parser->comments.length);
        error = 0;
    }
    if (error == 0)
        append_directive(into, made);
    if (error == 0 && made->block)
        error = str_ends(made->name, STR("_by_lua_block")) ? lua_skip(source)
                                                           : block_parse(source, made, made->place.line);
    return error;
}

/* Parses directives up to the "}" of the block opened in this line, or up to the end of the file (0). */
static int block_parse(struct source *source, struct nginx_directive *into, unsigned opened)
{
    struct nginx_token token;
    int error = ++source->parser->depth > LIMIT_IMPORT_DEPTH
                    ? parse_fail(source, opened, "blocks are nested too deeply")
                    : 0;

    while (error == 0 && (error = next_token(source, &token)) == 0) {
        if (token.kind == NGINX_COMMENT)
            error = attach_comment(source, &token);
        else if (token.kind == NGINX_WORD)
            error = directive_parse(source, &token, into);
        else
            break;
    }
    source->parser->depth--;
    if (error < 0)
        return error;
    if (token.kind == NGINX_END_OF_FILE)
        return opened ? parse_fail(source, opened, "this block is not closed") : 0;
    if (token.kind == NGINX_CLOSE && opened) {
        source->latest = into;
        source->latest_line = into->comment_beside.data ? 0 : token.line;
        return attach_comments(source->parser, &into->comments_below);
    }
    return parse_fail(source, token.line,
                      token.kind == NGINX_CLOSE  ? "unexpected \"}\""
                      : token.kind == NGINX_OPEN ? "\"{\" without a name before it"
                                           : "\";\" without a directive before it");
}

/* Parses a file. -ELOOP: too many files, or nested too deeply; -ENOENT and others: it cannot be read. */
static int parse_file(struct parser *parser, struct str path, struct nginx_directive *into)
{
    struct source source = {.parser = parser, .path = path};
    struct str text;
    int error;

    if (parser->depth >= LIMIT_IMPORT_DEPTH || ++parser->read > LIMIT_IMPORT_FILES)
        return -ELOOP;
    error = parser->files->read(parser->files->owner, parser->arena, path, &text);
    if (error < 0)
        return error == -ENOMEM ? error : -ENOENT;
    if (text.length > LIMIT_CONF_FILE)
        return parse_fail(&source, 1, "the file is too long");
    nginx_lexer_init(&source.lexer, parser->arena, text);
    return block_parse(&source, into, 0);
}

struct str nginx_directory(struct str path)
{
    ssize_t slash = str_rfind(path, '/');

    if (slash < 0)
        return STR(".");
    return slash == 0 ? STR("/") : str_slice(path, 0, (size_t)slash);
}

int nginx_tree_read(struct arena *arena, const struct nginx_files *files, struct str path,
                    struct nginx_directive **out_root, struct nginx_fault *out_fault)
{
    struct parser parser = {.arena = arena, .files = files, .directory = nginx_directory(path), .fault = out_fault};
    struct nginx_directive *root = arena_zalloc(arena, 1, sizeof(*root));
    int error = -ENOMEM;

    if (root) {
        root->block = true;
        root->place = (struct nginx_place){path, 0};
        error = parse_file(&parser, path, root);
    }
    if (error == -ENOENT || error == -ELOOP) {
        *out_fault = (struct nginx_fault){{path, 0}, STR("the file cannot be read")};
        error = -EINVAL;
    }
    if (error == 0)
        error = attach_comments(&parser, &root->comments_below);
    buffer_finish(&parser.comments);
    if (error == 0)
        *out_root = root;
    return error;
}

struct nginx_directive *nginx_tree_find(const struct nginx_directive *block, struct str name)
{
    struct nginx_directive *child = block->first;

    while (child && !str_equal(child->name, name))
        child = child->next;
    return child;
}

struct str nginx_tree_line(struct arena *arena, const struct nginx_directive *directive)
{
    struct str *parts = arena_zalloc(arena, 2 * directive->count + 1, sizeof(*parts));

    if (!parts)
        return (struct str){NULL, 0};
    parts[0] = directive->name;
    for (size_t i = 0; i < directive->count; i++) {
        parts[2 * i + 1] = STR(" ");
        parts[2 * i + 2] = directive->words[i];
    }
    return arena_join(arena, parts, 2 * directive->count + 1);
}
