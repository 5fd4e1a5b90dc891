/*
 * The index uses three hash tables, so that lookup time does not depend on the number of virtual servers.
 */
#include "tls/tls_names.h"

#include "base/limits.h"

#include <errno.h>

void tls_names_init(struct tls_names *names)
{
    table_init(&names->exact, true);
    table_init(&names->suffixes, true);
    table_init(&names->prefixes, true);
}

void tls_names_finish(struct tls_names *names)
{
    table_finish(&names->exact);
    table_finish(&names->suffixes);
    table_finish(&names->prefixes);
}

static struct str without_last_dot(struct str name)
{
    if (name.length > 1 && name.data[name.length - 1] == '.')
        name.length--;
    return name;
}

static int add_once(struct table *table, struct str name, void *value)
{
    if (table_get(table, name))
        return -EEXIST;
    return table_set(table, name, value);
}

int tls_names_add(struct tls_names *names, struct str name, void *value)
{
    if (str_empty(name) || name.data[0] == '~')
        return 0;
    if (name.length > 2 && str_ends(name, STR(".*")) && str_find(name, '*') == (ssize_t)name.length - 1)
        return add_once(&names->prefixes, str_slice(name, 0, name.length - 1), value);
    name = without_last_dot(name);
    if (name.length > 2 && str_starts(name, STR("*.")) && str_rfind(name, '*') == 0)
        return add_once(&names->suffixes, str_skip(name, 1), value);
    if (str_find(name, '*') >= 0)
        return -EINVAL;
    if (name.length > 1 && name.data[0] == '.') {
        int error = add_once(&names->exact, str_skip(name, 1), value);
        return error < 0 ? error : add_once(&names->suffixes, name, value);
    }
    return add_once(&names->exact, name, value);
}

void *tls_names_find(const struct tls_names *names, struct str name)
{
    void *found;

    name = without_last_dot(name);
    if (str_empty(name) || name.length > LIMIT_SERVER_NAME)
        return NULL;
    if ((found = table_get(&names->exact, name)))
        return found;
    for (size_t i = 1; names->suffixes.count && i < name.length; i++)
        if (name.data[i] == '.' && (found = table_get(&names->suffixes, str_skip(name, i))))
            return found;
    for (size_t i = name.length; names->prefixes.count && i-- > 1;)
        if (name.data[i] == '.' && (found = table_get(&names->prefixes, str_slice(name, 0, i + 1))))
            return found;
    return NULL;
}
