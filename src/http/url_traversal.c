/*
 * A state machine over bytes: escapes become bytes, bytes become segments, and a ".." segment must follow a
 * segment that it may remove.
 */
#include "http/url_traversal.h"

/* `slash`: the segment ends with an unescaped slash; to some applications "%2f" and "\" do not end a segment. */
static void end_segment(struct url_traversal *traversal, bool slash)
{
    bool dots_alone = traversal->dots == traversal->length;

    if (traversal->length == 2 && dots_alone) {
        if (traversal->from_request && traversal->depth == 0)
            traversal->found = true;
        traversal->depth -= traversal->depth > 0;
    } else if (traversal->whole && slash && traversal->length > 0 && !(traversal->length == 1 && dots_alone)) {
        traversal->depth++;
    }
    traversal->length = traversal->dots = 0;
    traversal->from_request = traversal->parameters = false;
    traversal->whole = slash;
}

static void add_byte(struct url_traversal *traversal, char c, bool from_request, bool escaped)
{
    if (c == '/' || c == '\\') {
        end_segment(traversal, c == '/' && !escaped);
        return;
    }
    traversal->parameters |= c == ';';
    if (traversal->parameters)
        return;
    traversal->from_request |= from_request;
    traversal->dots += c == '.';
    traversal->length++;
}

/* An incomplete escape counts as plain bytes. */
static void flush_escape(struct url_traversal *traversal, bool from_request)
{
    for (unsigned i = 0; i < traversal->escape_length; i++)
        add_byte(traversal, traversal->escape[i], from_request, false);
    traversal->escape_length = 0;
}

/* True if the byte belongs to an escape. */
static bool add_escape(struct url_traversal *traversal, char c, bool from_request)
{
    int high, low = str_hex_digit(c);

    if (c == '%' || (traversal->escape_length > 0 && low < 0))
        flush_escape(traversal, from_request);
    if (c != '%' && traversal->escape_length == 0)
        return false;
    if (traversal->escape_length < 2) {
        traversal->escape[traversal->escape_length++] = c;
        return true;
    }
    high = str_hex_digit(traversal->escape[1]);
    traversal->escape_length = 0;
    add_byte(traversal, (char)(high << 4 | low), from_request, true);
    return true;
}

void url_traversal_add(struct url_traversal *traversal, struct str piece, bool from_request)
{
    traversal->depth = 0;
    traversal->whole = traversal->length == 0 && traversal->escape_length == 0;
    for (size_t i = 0; i < piece.length && !traversal->ended; i++) {
        char c = piece.data[i];

        if (traversal->encoded && add_escape(traversal, c, from_request))
            continue;
        if (traversal->encoded && c == '?')
            traversal->ended = true;
        else
            add_byte(traversal, c, from_request, false);
    }
}

bool url_traversal_end(struct url_traversal *traversal)
{
    flush_escape(traversal, false);
    end_segment(traversal, false);
    return traversal->found;
}
