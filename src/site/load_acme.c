/*
 * The certificates of `ssl_certificate: acme`: one for each first name, with the names of all servers that have it.
 */
#include "acme/acme_status.h"
#include "acme/acme_tls_alpn.h"
#include "base/limits.h"
#include "site/load.h"

#include <errno.h>

static bool same_words(const struct conf_words *one, const struct conf_words *other)
{
    for (size_t i = 0; i < one->count && i < other->count; i++) {
        if (!str_equal(one->items[i], other->items[i]))
            return false;
    }
    return one->count == other->count;
}

static bool same_settings(const struct acme_settings *one, const struct acme_settings *other)
{
    return str_equal(one->email, other->email) && same_words(&one->directories, &other->directories) &&
           one->client == other->client && one->challenge == other->challenge && one->key_type == other->key_type &&
           str_equal(one->eab_key_id, other->eab_key_id) && str_equal(one->eab_key, other->eab_key) &&
           str_equal(one->dns, other->dns) && same_words(&one->dns_resolvers, &other->dns_resolvers) &&
           one->dns_propagation == other->dns_propagation && str_equal(one->environment, other->environment);
}

static void report_name(struct load *load, const struct loaded_server *loaded, struct str hint, const char *text,
                        struct str name)
{
    const struct core_file *files = loaded->ssl->certificates.items;

    conf_error(load->errors, files[0].mark, hint, "ssl_certificate: acme %s \"" STR_FMT "\"", text, STR_ARG(name));
}

/* http-01 and tls-alpn-01 prove the control of single names only; dns-01 only of DNS names. */
static struct str name_hint(const struct acme_settings *settings, struct str name)
{
    bool by_dns = settings->challenge == ACME_DNS_01;

    if (acme_wildcard_valid(name))
        return by_dns ? STR("") : STR("a wildcard needs acme: {client: lego, challenge: dns-01, dns: PROVIDER}");
    if (!acme_name_valid(name))
        return STR("list the names; move wildcards and regular expressions to another server");
    return by_dns && acme_address_valid(name) ? STR("an address needs the challenge http-01 or tls-alpn-01") : STR("");
}

/* The files of a certificate are named after its first name. */
static struct str first_name_hint(const struct acme_settings *settings, struct str name)
{
    struct str hint = name_hint(settings, name);

    return !str_empty(hint) || name.length <= LIMIT_ACME_FIRST_NAME
               ? hint
               : STR("its files cannot have the name: list one of at most 244 bytes first");
}

static bool names_valid(struct load *load, const struct loaded_server *loaded)
{
    const struct conf_words *names = &loaded->server->names;
    const struct core_file *files = loaded->ssl->certificates.items;
    size_t faults = 0;

    if (names->count == 0 || str_empty(names->items[0])) {
        conf_error(load->errors, files[0].mark, STR("server_name: example.org"),
                   "ssl_certificate: acme needs the names of the certificate");
        return false;
    }
    for (size_t i = 0; i < names->count; i++) {
        struct str hint = i == 0 ? first_name_hint(&loaded->ssl->acme, names->items[i])
                                 : name_hint(&loaded->ssl->acme, names->items[i]);

        if (str_empty(hint))
            continue;
        report_name(load, loaded, hint, "cannot obtain a certificate for", names->items[i]);
        faults++;
    }
    return faults == 0;
}

static struct acme_certificate *find_certificate(const struct load *load, struct str name)
{
    struct acme *acme = &load->configuration->acme;

    for (size_t i = 0; i < acme->count; i++) {
        if (str_equal(acme->items[i].name, name))
            return &acme->items[i];
    }
    return NULL;
}

static bool has_name(const struct acme_certificate *certificate, struct str name)
{
    for (size_t i = 0; i < certificate->name_count; i++) {
        if (str_equal(certificate->names[i], name))
            return true;
    }
    return false;
}

/* Adds the names of a server to the certificate; reports too many. */
static void add_names(struct load *load, const struct loaded_server *loaded, struct acme_certificate *certificate)
{
    const struct conf_words *names = &loaded->server->names;

    for (size_t i = 0; i < names->count; i++) {
        if (has_name(certificate, names->items[i]))
            continue;
        if (certificate->name_count == LIMIT_ACME_NAMES) {
            report_name(load, loaded, STR("distribute the names over several servers"),
                   "permits at most 100 names, the first one is", certificate->name);
            return;
        }
        certificate->names[certificate->name_count++] = names->items[i];
    }
}

/* All certificates are in one folder, in which one user writes. */
static bool place_valid(struct load *load, const struct loaded_server *loaded)
{
    const struct acme *acme = &load->configuration->acme;
    const struct acme_settings *settings = &loaded->ssl->acme;

    if (acme->count == 0 || (str_equal(acme->state, settings->state) && str_equal(acme->user, settings->user)))
        return true;
    report_name(load, loaded, STR("set state and user once, in http"),
           "has other values of acme.state and acme.user than", acme->items[0].name);
    return false;
}

static int start_certificate(struct load *load, const struct loaded_server *loaded, struct acme_certificate *made)
{
    struct arena *arena = load->reader.arena;
    struct acme *acme = &load->configuration->acme;
    struct str file_name = loaded->server->names.items[0];

    acme->state = arena_copy(arena, loaded->ssl->acme.state);
    acme->user = arena_copy(arena, str_or_empty(loaded->ssl->acme.user));
    acme->challenges = arena_join(arena, (const struct str[]){acme->state, STR("/challenges")}, 2);
    *made = (struct acme_certificate){.name = loaded->server->names.items[0], .settings = &loaded->ssl->acme};
    if (acme_wildcard_valid(file_name))
        file_name = arena_join(arena, (const struct str[]){STR("_"), str_skip(file_name, 1)}, 2);
    made->environment = arena_copy(arena, str_or_empty(made->settings->environment));
    made->names = arena_zalloc(arena, LIMIT_ACME_NAMES, sizeof(struct str));
    made->file =
        arena_printf(arena, STR_FMT "/certificates/" STR_FMT ".pem", STR_ARG(acme->state), STR_ARG(file_name));
    made->attempt_file =
        arena_printf(arena, STR_FMT "/certificates/" STR_FMT ".state", STR_ARG(acme->state), STR_ARG(file_name));
    return acme->state.data && acme->user.data && acme->challenges.data && made->names && made->file.data &&
                   made->attempt_file.data && made->environment.data && file_name.data
               ? 0
               : -ENOMEM;
}

static int load_certificate(struct load *load, const struct loaded_server *loaded)
{
    struct acme *acme = &load->configuration->acme;
    struct acme_certificate *certificate;

    if (!core_acme_used(loaded->ssl) || !names_valid(load, loaded) || !place_valid(load, loaded))
        return 0;
    certificate = find_certificate(load, loaded->server->names.items[0]);
    if (certificate && !same_settings(certificate->settings, &loaded->ssl->acme)) {
        report_name(load, loaded, STR("use the same settings, or another first name"),
               "has different settings of acme for the certificate of", certificate->name);
        return 0;
    }
    if (!certificate) {
        certificate = &acme->items[acme->count];
        if (start_certificate(load, loaded, certificate) < 0)
            return -ENOMEM;
        acme->count++;
    }
    add_names(load, loaded, certificate);
    return 0;
}

int load_acme(struct load *load)
{
    int error = 0;

    load->configuration->acme.items =
        arena_zalloc(load->reader.arena, load->server_count + 1, sizeof(struct acme_certificate));
    if (!load->configuration->acme.items)
        return -ENOMEM;
    for (size_t i = 0; i < load->server_count && error == 0; i++)
        error = load_certificate(load, &load->servers[i]);
    return error;
}

static bool find_challenge(void *owner, struct str server_name, struct tls_challenge *out_challenge)
{
    const struct acme *acme = owner;
    struct acme_tls_alpn found;

    if (!acme_zone_renewing(acme->zone) || acme_tls_alpn_read(acme->challenges.data, server_name, &found) < 0)
        return false;
    _Static_assert(sizeof(found.identifier) == sizeof(out_challenge->identifier) &&
                       sizeof(found.digest) == sizeof(out_challenge->digest),
                   "the same limits");
    memcpy(out_challenge->identifier, found.identifier, sizeof(found.identifier));
    memcpy(out_challenge->digest, found.digest, sizeof(found.digest));
    return true;
}

int load_acme_challenges(struct load *load)
{
    struct configuration *configuration = load->configuration;

    if (!acme_uses_challenge(&configuration->acme, ACME_TLS_ALPN_01))
        return 0;
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        struct endpoint *endpoint = &configuration->endpoints[i];

        if (endpoint->tls && !endpoint->tls_borrowed &&
            !tls_context_answer_challenges(endpoint->tls, find_challenge, &configuration->acme))
            return -ENOMEM;
    }
    return 0;
}

const struct acme_certificate *load_acme_find(const struct load *load, const struct virtual_server *server)
{
    return server->names.count > 0 ? find_certificate(load, server->names.items[0]) : NULL;
}
