/*
 * Names of header fields in directives.
 */
#ifndef SITE_FIELD_NAME_H
#define SITE_FIELD_NAME_H

#include "conf/directive.h"

/*
 * Checks the name of a field that `directive` sets (add_header, proxy_set_header): a token (RFC 9110, 5.1), and none
 * of `reserved` (terminated by NULL), which the server writes itself. `hint` is reported with a name that is not a
 * token. Returns 0, or -EINVAL after reporting it.
 */
MUST_CHECK int field_name_check(struct conf_reader *reader, struct conf_mark mark, struct str name,
                                const char *directive, const char *const *reserved, struct str hint);

#endif
