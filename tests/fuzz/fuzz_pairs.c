/*
 * Queries and cookies: the first line of the input is a name, the rest a list. A value is a slice of the list, directly
 * after the name and "=", and ends at the separator or at the end of the list. A name that is absent stays absent in
 * every list that the list begins with.
 */
#include "fuzz.h"

#include "http/pairs.h"

typedef struct str find_pair(struct str list, struct str name);

static void check_pair(find_pair *find, char separator, struct str list, struct str name)
{
    struct str value = find(list, name);
    size_t at, end;

    if (!value.data) {
        for (size_t i = 0; i < list.length && i < 64; i++)
            HOLDS(list.data[i] != separator || !find(str_slice(list, 0, i), name).data);
        return;
    }
    at = (size_t)(value.data - list.data);
    end = at + value.length;
    HOLDS(end <= list.length && str_find(value, separator) < 0);
    HOLDS(at > name.length && list.data[at - 1] == '=');
    HOLDS(str_equal_nocase(str_slice(list, at - 1 - name.length, at - 1), name));
    while (separator == ';' && end < list.length && (list.data[end] == ' ' || list.data[end] == '\t'))
        end++;
    HOLDS(end == list.length || list.data[end] == separator);
    HOLDS(str_equal(find(str_slice(list, 0, end), name), value));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str list = str_of((const char *)bytes, size);
    struct str name = str_cut(&list, '\n');

    if (!list.data || str_find(name, '=') >= 0)
        return 0;
    check_pair(query_find, '&', list, name);
    check_pair(cookie_find, ';', list, name);
    return 0;
}
