/*
 * Checks names and tokens, which become file names and arguments.
 */
#include "acme/acme.h"

#include "base/limits.h"

#include <arpa/inet.h>

const char *const acme_challenge_types[] = {"http-01", "tls-alpn-01", "dns-01", NULL};

bool acme_uses_challenge(const struct acme *acme, enum acme_challenge_type type)
{
    for (size_t i = 0; i < acme->count; i++) {
        if (acme->items[i].settings->challenge == (int)type)
            return true;
    }
    return false;
}

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool label_valid(struct str label)
{
    if (label.length < 1 || label.length > 63 || label.data[0] == '-' || label.data[label.length - 1] == '-')
        return false;
    for (size_t i = 0; i < label.length; i++) {
        if (!is_alphanumeric(label.data[i]) && label.data[i] != '-')
            return false;
    }
    return true;
}

bool acme_name_valid(struct str name)
{
    if (name.length < 1 || name.length > LIMIT_ACME_NAME)
        return false;
    while (name.data) {
        if (!label_valid(str_cut(&name, '.')))
            return false;
    }
    return true;
}

bool acme_address_valid(struct str name)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr address;

    if (name.length >= sizeof(text))
        return false;
    memcpy(text, name.data, name.length);
    text[name.length] = '\0';
    return inet_pton(AF_INET, text, &address) == 1;
}

bool acme_wildcard_valid(struct str name)
{
    return str_starts(name, STR("*.")) && name.length <= LIMIT_ACME_NAME && acme_name_valid(str_skip(name, 2));
}

bool acme_base64url_valid(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.data[i];

        if (!is_alphanumeric(str_lower(c)) && c != '-' && c != '_')
            return false;
    }
    return !str_empty(text);
}

bool acme_token_valid(struct str token)
{
    return token.length <= LIMIT_ACME_TOKEN && acme_base64url_valid(token);
}

bool acme_authorization_valid(struct str authorization, struct str token)
{
    struct str thumbprint = authorization;

    return authorization.length <= LIMIT_ACME_AUTHORIZATION && acme_token_valid(token) &&
           str_equal(str_cut(&thumbprint, '.'), token) && acme_base64url_valid(str_or_empty(thumbprint));
}
