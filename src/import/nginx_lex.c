/*
 * Splits nginx's language into tokens by nginx's rules: a quote is special only at the start of a word, "${" opens no
 * block, a backslash escapes the next byte, and a closing quote ends the word.
 */
#include "import/nginx_lex.h"

#include <errno.h>

void nginx_lexer_init(struct nginx_lexer *lexer, struct arena *arena, struct str source)
{
    /* A UTF-8 byte order mark is skipped. */
    *lexer = (struct nginx_lexer){.arena = arena, .source = source, .line = 1};
    lexer->at = str_starts(source, STR("\xef\xbb\xbf")) ? 3 : 0;
}

static bool is_nginx_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int lexer_fail(struct nginx_lexer *lexer, const char *fault)
{
    lexer->fault = fault;
    return -EINVAL;
}

static bool at_end(const struct nginx_lexer *lexer)
{
    return lexer->at >= lexer->source.length;
}

static char peek_byte(const struct nginx_lexer *lexer)
{
    return lexer->source.data[lexer->at];
}

/* Consumes the current byte and counts lines. */
static char next_byte(struct nginx_lexer *lexer)
{
    char c = lexer->source.data[lexer->at++];

    lexer->line += c == '\n';
    return c;
}

/* The value of an escape; NUL: backslash and byte are kept, for regular expressions. */
static char unescape_character(char c)
{
    static const char pairs[] = "\"\"''\\\\t\tr\rn\n";

    for (size_t i = 0; i + 1 < sizeof(pairs); i += 2) {
        if (pairs[i] == c)
            return pairs[i + 1];
    }
    return '\0';
}

static int word_finish(struct nginx_lexer *lexer, size_t start, size_t end, struct str *out_word)
{
    struct str raw = str_slice(lexer->source, start, end);
    size_t length = 0;
    char *made;

    if (str_find(raw, '\\') < 0) {
        *out_word = str_of(lexer->source.data + start, end - start);
        return 0;
    }
    made = arena_alloc(lexer->arena, raw.length);
    if (!made)
        return -ENOMEM;
    for (size_t i = 0; i < raw.length; i++) {
        char c = raw.data[i];

        if (c == '\\' && i + 1 < raw.length && unescape_character(raw.data[i + 1]))
            c = unescape_character(raw.data[++i]);
        made[length++] = c;
    }
    *out_word = str_of(made, length);
    return 0;
}

/* True for a byte that ends the current word. */
static bool ends_word(char c, char quote, bool dollar)
{
    if (quote)
        return c == quote;
    return is_nginx_blank(c) || c == ';' || (c == '{' && !dollar);
}

static int word_read(struct nginx_lexer *lexer, struct str *out_word)
{
    char quote = peek_byte(lexer) == '"' || peek_byte(lexer) == '\'' ? next_byte(lexer) : '\0';
    size_t start = lexer->at;
    bool dollar = false;

    while (!at_end(lexer) && !ends_word(peek_byte(lexer), quote, dollar)) {
        char c = next_byte(lexer);

        if (c == '\0' || (c == '\\' && !at_end(lexer) && next_byte(lexer) == '\0'))
            return lexer_fail(lexer, "a NUL byte is not allowed in a word");
        dollar = c == '$';
    }
    if (at_end(lexer))
        return lexer_fail(lexer, quote ? "the file ends within quotes" : "the file ends within a directive");
    if (word_finish(lexer, start, lexer->at, out_word) < 0)
        return -ENOMEM;
    if (quote) {
        next_byte(lexer);
        lexer->delimiter_required = true;
    }
    return 0;
}

static struct str comment_read(struct nginx_lexer *lexer)
{
    size_t start = lexer->at;

    while (!at_end(lexer) && peek_byte(lexer) != '\n')
        next_byte(lexer);
    return str_trim(str_slice(lexer->source, start,
                              lexer->at > start && lexer->source.data[lexer->at - 1] == '\r' ? lexer->at - 1
                                                                                             : lexer->at));
}

int nginx_lexer_next(struct nginx_lexer *lexer, struct nginx_token *out_token)
{
    static const char signs[] = "{};";
    static const enum nginx_token_kind kinds[] = {NGINX_OPEN, NGINX_CLOSE, NGINX_SEMICOLON};
    const char *sign;
    char c;

    if (lexer->delimiter_required && !at_end(lexer) && !is_nginx_blank(peek_byte(lexer)) &&
        !strchr(";{)", peek_byte(lexer)))
        return lexer_fail(lexer, "something follows a closing quote without a blank");
    lexer->delimiter_required = false;
    while (!at_end(lexer) && is_nginx_blank(peek_byte(lexer)))
        next_byte(lexer);
    *out_token = (struct nginx_token){.kind = NGINX_END_OF_FILE, .line = lexer->line};
    if (at_end(lexer))
        return 0;
    c = peek_byte(lexer);
    sign = c ? strchr(signs, c) : NULL;
    if (sign) {
        next_byte(lexer);
        out_token->kind = kinds[sign - signs];
        return 0;
    }
    if (c == '#') {
        out_token->kind = NGINX_COMMENT;
        out_token->text = comment_read(lexer);
        return 0;
    }
    out_token->kind = NGINX_WORD;
    return word_read(lexer, &out_token->text);
}

static bool next_is(const struct nginx_lexer *lexer, char c)
{
    return !at_end(lexer) && peek_byte(lexer) == c;
}

/* Skips Lua's "[[...]]" or "[==[...]==]" after its first bracket; other text is not consumed. */
static void long_text_skip(struct nginx_lexer *lexer)
{
    size_t level = 0, found;

    while (lexer->at + level < lexer->source.length && lexer->source.data[lexer->at + level] == '=')
        level++;
    if (lexer->at + level >= lexer->source.length || lexer->source.data[lexer->at + level] != '[')
        return;
    while (!at_end(lexer)) {
        if (next_byte(lexer) != ']')
            continue;
        for (found = 0; found < level && next_is(lexer, '='); found++)
            next_byte(lexer);
        if (found == level && next_is(lexer, ']')) {
            next_byte(lexer);
            return;
        }
    }
}

static void quoted_skip(struct nginx_lexer *lexer, char quote)
{
    while (!at_end(lexer) && peek_byte(lexer) != quote) {
        if (next_byte(lexer) == '\\' && !at_end(lexer))
            next_byte(lexer);
    }
    if (!at_end(lexer))
        next_byte(lexer);
}

static void lua_comment_skip(struct nginx_lexer *lexer)
{
    size_t before;

    next_byte(lexer);
    before = lexer->at;
    if (next_is(lexer, '[')) {
        next_byte(lexer);
        long_text_skip(lexer);
    }
    if (lexer->at <= before + 1) /* not a long bracket: a comment to the end of the line */
        comment_read(lexer);
}

int nginx_lexer_skip_lua(struct nginx_lexer *lexer)
{
    unsigned depth = 1;

    while (!at_end(lexer)) {
        char c = next_byte(lexer);

        if (c == '"' || c == '\'')
            quoted_skip(lexer, c);
        else if (c == '[')
            long_text_skip(lexer);
        else if (c == '-' && next_is(lexer, '-'))
            lua_comment_skip(lexer);
        depth += c == '{';
        depth -= c == '}';
        if (depth == 0)
            return 0;
    }
    return lexer_fail(lexer, "the file ends within a block of Lua");
}
