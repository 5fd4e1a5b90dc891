/*
 * Parses the body of a request to the control socket: one JSON object (RFC 8259) whose members are texts, numbers,
 * switches or null.
 */
#ifndef CONTROL_JSON_OBJECT_H
#define CONTROL_JSON_OBJECT_H

#include "base/arena.h"

enum { JSON_MEMBERS_MAX = 16 };

enum json_kind { JSON_TEXT, JSON_NUMBER, JSON_SWITCH, JSON_NULL };

struct json_member {
    struct str name;
    enum json_kind kind;
    struct str text;                /* a text: decoded; otherwise as written: "12", "true" */
};

struct json_object {
    struct json_member members[JSON_MEMBERS_MAX];
    size_t count;
};

struct json_fault {
    const char *reason;             /* "a comma or } is expected" */
    size_t at;                      /* position of the byte, from 1 */
};

/* Texts are in the arena or in `text`. Names are unique. 0; -EINVAL with *out_fault; or -ENOMEM. */
MUST_CHECK int json_object_parse(struct arena *arena, struct str text, struct json_object *out,
                                 struct json_fault *out_fault);

#endif
