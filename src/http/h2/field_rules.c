/*
 * Rules for fields of requests and responses.
 */
#include "http/h2/field_rules.h"

#include "http/h1_parse.h"

bool h2_field_is_name(struct str name)
{
    for (size_t i = 0; i < name.length; i++) {
        if (name.data[i] >= 'A' && name.data[i] <= 'Z')
            return false;
    }
    return h1_is_token(name);
}

bool h2_field_is_value(struct str value)
{
    return h1_is_value(value) && str_trim(value).length == value.length;
}

bool h2_field_is_connection_specific(struct str name, struct str value)
{
    switch (name.length) {
    case 2:
        return str_equal(name, STR("te")) && !str_equal_nocase(value, STR("trailers"));
    case 7:
        return str_equal(name, STR("upgrade"));
    case 10:
        return str_equal(name, STR("connection")) || str_equal(name, STR("keep-alive"));
    case 16:
        return str_equal(name, STR("proxy-connection"));
    case 17:
        return str_equal(name, STR("transfer-encoding"));
    default:
        return false;
    }
}
