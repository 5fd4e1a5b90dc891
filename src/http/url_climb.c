/*
 * A state machine over bytes: escapes become bytes, bytes become segments, and a ".." segment must find one to
 * remove.
 */
#include "http/url_climb.h"

/* `slash`: by a real slash; for some applications an escaped slash or a backslash does not end a segment. */
static void end_segment(struct url_climb *climb, bool slash)
{
    bool dots_alone = climb->dots == climb->length;

    if (climb->length == 2 && dots_alone) {
        if (climb->given && climb->depth == 0)
            climb->found = true;
        climb->depth -= climb->depth > 0;
    } else if (climb->whole && slash && climb->length > 0 && !(climb->length == 1 && dots_alone)) {
        climb->depth++;
    }
    climb->length = climb->dots = 0;
    climb->given = climb->parameters = false;
    climb->whole = slash;
}

static void add_byte(struct url_climb *climb, char c, bool given, bool escaped)
{
    if (c == '/' || c == '\\') {
        end_segment(climb, c == '/' && !escaped);
        return;
    }
    climb->parameters |= c == ';';
    if (climb->parameters)
        return;
    climb->given |= given;
    climb->dots += c == '.';
    climb->length++;
}

/* An incomplete escape counts as plain bytes. */
static void flush_escape(struct url_climb *climb, bool given)
{
    for (unsigned i = 0; i < climb->escape_length; i++)
        add_byte(climb, climb->escape[i], given, false);
    climb->escape_length = 0;
}

/* True if the byte belongs to an escape. */
static bool add_escape(struct url_climb *climb, char c, bool given)
{
    int high, low = str_hex_digit(c);

    if (c == '%' || (climb->escape_length > 0 && low < 0))
        flush_escape(climb, given);
    if (c != '%' && climb->escape_length == 0)
        return false;
    if (climb->escape_length < 2) {
        climb->escape[climb->escape_length++] = c;
        return true;
    }
    high = str_hex_digit(climb->escape[1]);
    climb->escape_length = 0;
    add_byte(climb, (char)(high << 4 | low), given, true);
    return true;
}

void url_climb_add(struct url_climb *climb, struct str piece, bool given)
{
    climb->depth = 0;
    climb->whole = climb->length == 0 && climb->escape_length == 0;
    for (size_t i = 0; i < piece.length && !climb->ended; i++) {
        char c = piece.data[i];

        if (climb->encoded && add_escape(climb, c, given))
            continue;
        if (climb->encoded && c == '?')
            climb->ended = true;
        else
            add_byte(climb, c, given, false);
    }
}

bool url_climb_end(struct url_climb *climb)
{
    flush_escape(climb, false);
    end_segment(climb, false);
    return climb->found;
}
