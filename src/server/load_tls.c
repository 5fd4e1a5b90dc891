/*
 * TLS of the endpoints: settings from the directives, one context for each set of servers,
 * and mistakes told at the place of the certificate they are about.
 */
#include "server/load.h"

#include <errno.h>
#include <unistd.h>

static int take_certificates(struct load *load, const struct core_ssl *ssl, struct tls_settings *out)
{
    const struct core_file *files = ssl->certificates.items;
    const struct core_file *keys = ssl->keys.items;
    struct tls_certificate *certificates;

    certificates = arena_zalloc(load->reader.arena, ssl->certificates.count + 1, sizeof(*certificates));
    if (!certificates)
        return -ENOMEM;
    for (size_t i = 0; i < ssl->certificates.count; i++) {
        certificates[i].certificate = files[i].path;
        certificates[i].key = i < ssl->keys.count ? keys[i].path : STR("");
    }
    out->certificates = certificates;
    out->certificate_count = ssl->certificates.count;
    return 0;
}

static int take_tls(struct load *load, const struct loaded_server *loaded)
{
    const struct core_ssl *ssl = loaded->ssl;
    struct virtual_server *server = loaded->server;

    server->tls = (struct tls_settings){
        .names = server->names.items,
        .name_count = server->names.count,
        .protocols = ssl->protocols,
        .ciphers = ssl->ciphers,
        .ciphersuites = ssl->ciphersuites,
        .curves = ssl->curves,
        .prefer_server_ciphers = ssl->prefer_server_ciphers,
        .session_tickets = ssl->session_tickets,
        .session_timeout_s = ssl->session_timeout_ms / 1000,
        .ktls = (enum tls_ktls)ssl->ktls,
        .ktls_threshold = ssl->ktls_threshold,
    };
    return take_certificates(load, ssl, &server->tls);
}

/* Every server of an ssl endpoint has a certificate. */
static bool check_certificates(struct load *load, const struct endpoint *endpoint)
{
    bool good = true;

    for (size_t i = 0; i < endpoint->server_count; i++) {
        const struct loaded_server *loaded = load_find_server(load, endpoint->servers[i]);

        if (loaded->ssl->certificates.count)
            continue;
        conf_error(load->errors, loaded->node->mark,
                   STR("ssl_certificate: self-signed, or a PEM file with ssl_certificate_key"),
                   "this server listens with ssl on \"" STR_FMT "\" and has no certificate",
                   STR_ARG(endpoint->text));
        good = false;
    }
    return good;
}

/* With -t the files of others may be unreadable: that is said, and the rest is tested. */
static bool skip_unreadable(struct load *load, const struct core_file *file)
{
    struct str path = arena_copy(load->reader.arena, file->path);

    if (!path.data || !load->reader.test_only || access(path.data, R_OK) == 0 || errno != EACCES)
        return false;
    conf_warning(load->errors, file->mark, STR("test as the user who starts the server"),
                 "\"" STR_FMT "\" cannot be read by this user, and was not tested", STR_ARG(file->path));
    return true;
}

static bool skip_endpoint(struct load *load, const struct endpoint *endpoint)
{
    bool skip = false;

    for (size_t i = 0; i < endpoint->server_count; i++) {
        const struct core_ssl *ssl = load_find_server(load, endpoint->servers[i])->ssl;
        const struct core_file *files = ssl->certificates.items;
        const struct core_file *keys = ssl->keys.items;

        for (size_t k = 0; k < ssl->certificates.count; k++)
            skip |= skip_unreadable(load, &files[k]);
        for (size_t k = 0; k < ssl->keys.count; k++)
            skip |= skip_unreadable(load, &keys[k]);
    }
    return skip;
}

/* Where the directive stands that the message begins with ("ssl_ciphers: ..."), for this server; else a mark
 * without a file. */
static struct conf_mark directive_mark(const struct loaded_server *loaded, struct str message)
{
    struct str name = str_slice(message, 0, (size_t)str_find(message, ':'));
    const struct conf_scope_values *values = loaded->server->root->values;

    for (; values; values = values->outer) {
        const struct conf_node *node = conf_map_get(values->node, name);

        if (node)
            return node->mark;
    }
    return (struct conf_mark){0};
}

/* Where the directive or the file that the message names stands; else the endpoint's first certificate. */
static struct conf_mark find_mark(struct load *load, const struct endpoint *endpoint, struct str message)
{
    const struct core_file *first = load_find_server(load, endpoint->servers[0])->ssl->certificates.items;

    for (size_t i = 0; i < endpoint->server_count; i++) {
        const struct core_ssl *ssl = load_find_server(load, endpoint->servers[i])->ssl;
        const struct conf_rows *lists[] = {&ssl->keys, &ssl->certificates};
        struct conf_mark directive = directive_mark(load_find_server(load, endpoint->servers[i]), message);

        if (directive.file)
            return directive;

        for (size_t k = 0; k < 2; k++) {
            const struct core_file *files = lists[k]->items;

            for (size_t n = 0; n < lists[k]->count; n++) {
                if (str_search(message, files[n].path) >= 0)
                    return files[n].mark;
            }
        }
    }
    return first[0].mark;
}

static struct endpoint *same_servers(struct configuration *configuration, const struct endpoint *endpoint)
{
    for (struct endpoint *other = configuration->endpoints; other < endpoint; other++) {
        if (other->tls && other->server_count == endpoint->server_count &&
            memcmp(other->servers, endpoint->servers, endpoint->server_count * sizeof(void *)) == 0)
            return other;
    }
    return NULL;
}

static int open_tls(struct load *load, struct endpoint *endpoint)
{
    struct endpoint *other = same_servers(load->configuration, endpoint);
    struct tls_settings *settings;
    char why[512] = "";

    if (other) {
        endpoint->tls = other->tls;
        endpoint->tls_borrowed = true;
        return 0;
    }
    if (!check_certificates(load, endpoint) || skip_endpoint(load, endpoint))
        return 0;
    settings = arena_zalloc(load->reader.arena, endpoint->server_count, sizeof(*settings));
    if (!settings)
        return -ENOMEM;
    for (size_t i = 0; i < endpoint->server_count; i++) {
        settings[i] = endpoint->servers[i]->tls;
        settings[i].is_default = i == 0;
    }
    endpoint->tls = tls_context_create(settings, endpoint->server_count, load->log, why, sizeof(why));
    if (!endpoint->tls)
        conf_error(load->errors, find_mark(load, endpoint, str_from(why)), STR(""), "%s", why);
    return 0;
}

int load_tls(struct load *load)
{
    struct configuration *configuration = load->configuration;

    for (size_t i = 0; i < load->server_count; i++) {
        int error = take_tls(load, &load->servers[i]);

        if (error < 0)
            return error;
    }
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        int error = configuration->endpoints[i].ssl ? open_tls(load, &configuration->endpoints[i]) : 0;

        if (error < 0)
            return error;
    }
    return 0;
}

static bool is_available(const struct ktls_support *support)
{
    for (size_t i = 0; i < sizeof(support->reason) / sizeof(support->reason[0]); i++) {
        for (size_t k = 0; k < sizeof(support->reason[0]) / sizeof(support->reason[0][0]); k++) {
            if (support->reason[i][k] == KTLS_OK)
                return true;
        }
    }
    return false;
}

int configuration_check_ktls(const struct configuration *configuration, const struct ktls_support *support,
                             struct log *log)
{
    char described[512];
    struct str text;

    if (is_available(support))
        return 0;
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &configuration->endpoints[i];

        for (size_t k = 0; endpoint->ssl && k < endpoint->server_count; k++) {
            if (endpoint->servers[k]->tls.ktls != TLS_KTLS_ON)
                continue;
            text = ktls_describe(support, described, sizeof(described));
            log_write(log, LOG_EMERG,
                      "ssl_ktls is on for server \"" STR_FMT "\" on " STR_FMT ", and cannot be had: " STR_FMT
                      "; ssl_ktls: auto starts without it",
                      STR_ARG(endpoint->servers[k]->name), STR_ARG(endpoint->text), STR_ARG(text));
            return -ENOTSUP;
        }
    }
    return 0;
}
