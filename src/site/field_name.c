/*
 * Names of header fields in directives: see field_name.h.
 */
#include "site/field_name.h"

#include "http/h1_parse.h"

#include <errno.h>

int field_name_check(struct conf_reader *reader, struct conf_mark mark, struct str name, const char *directive,
                     const char *const *reserved, struct str hint)
{
    if (!h1_is_token(name)) {
        conf_error(reader->errors, mark, hint, "\"" STR_FMT "\" is not a header field name", STR_ARG(name));
        return -EINVAL;
    }
    for (; *reserved; reserved++) {
        if (str_equal_nocase(name, str_from(*reserved))) {
            conf_error(reader->errors, mark, STR("the server sets this field"), "%s cannot set " STR_FMT, directive,
                       STR_ARG(name));
            return -EINVAL;
        }
    }
    return 0;
}
