/*
 * TLS of the endpoints: one context for each set of servers, and errors reported at the place of the certificate
 * concerned.
 */
#include "site/load.h"

#include <errno.h>
#include <unistd.h>

static const struct listen_row *find_ssl_listen(const struct loaded_server *loaded)
{
    const struct listen_row *rows = loaded->own->listens.items;

    for (size_t i = 0; i < loaded->own->listens.count; i++) {
        if (rows[i].ssl)
            return &rows[i];
    }
    return NULL;
}

/* Reports servers that listen with ssl and have no certificate. */
static void check_certificates(struct load *load)
{
    for (size_t i = 0; i < load->server_count; i++) {
        const struct loaded_server *loaded = &load->servers[i];
        const struct listen_row *row = find_ssl_listen(loaded);

        if (row && loaded->valid && loaded->ssl->certificates.count == 0 && !loaded->ssl->reject)
            conf_error(load->errors, loaded->node->mark,
                       STR("ssl_certificate: acme, self-signed, or a PEM file with ssl_certificate_key"),
                       "this server listens with ssl on \"" STR_FMT "\" and has no certificate",
                       STR_ARG(row->text));
    }
}

/* With -t: warns of files that this user has no permission to read. Returns true if there are any. */
static bool skip_unreadable(struct load *load, const struct core_file *files, size_t count)
{
    bool skip = false;

    for (size_t i = 0; i < count && load->reader.test_only; i++) {
        struct str path = arena_copy(load->reader.arena, files[i].path);

        if (!path.data || access(path.data, R_OK) == 0 || errno != EACCES)
            continue;
        conf_warning(load->errors, files[i].mark, STR("test as the user that starts the server"),
                     "\"" STR_FMT "\" cannot be read by this user, and was not tested", STR_ARG(files[i].path));
        skip = true;
    }
    return skip;
}

static bool skip_server(struct load *load, const struct loaded_server *loaded)
{
    const struct core_ssl *ssl = loaded->ssl;
    const struct conf_rows *lists[] = {&ssl->certificates, &ssl->keys, &ssl->ticket_keys};
    const struct core_file single[] = {ssl->client_certificate, ssl->trusted_certificate, ssl->crl,
                                       ssl->passwords, ssl->dh_parameters};
    bool skip = false;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        skip |= skip_unreadable(load, lists[i]->items, lists[i]->count);
    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++)
        skip |= !str_empty(single[i].path) && skip_unreadable(load, &single[i], 1);
    return skip;
}

static bool skip_endpoint(struct load *load, const struct endpoint *endpoint)
{
    bool skip = false;

    for (size_t i = 0; i < endpoint->server_count; i++)
        skip |= skip_server(load, load_find_server(load, endpoint->servers[i]));
    return skip;
}

/* Returns the place of a fault: the file, the directive, or the server. */
static struct conf_mark fault_mark(const struct loaded_server *loaded, const struct tls_fault *fault)
{
    const struct {
        const char *directive;
        const struct conf_rows *files;
    } lists[] = {
        {"ssl_certificate", &loaded->ssl->certificates},
        {"ssl_certificate_key", &loaded->ssl->keys},
        {"ssl_session_ticket_key", &loaded->ssl->ticket_keys},
    };
    const struct conf_scope_values *values = loaded->values;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (strcmp(fault->directive, lists[i].directive) == 0 && fault->index < lists[i].files->count)
            return ((const struct core_file *)lists[i].files->items)[fault->index].mark;
    }
    if (strcmp(fault->directive, "ssl_conf_command") == 0 && core_ssl_command_at(loaded->ssl, fault->index))
        return core_ssl_command_at(loaded->ssl, fault->index)->mark;
    for (; values; values = values->outer) {
        const struct conf_node *node = conf_map_get(values->node, str_from(fault->directive));

        if (node)
            return node->mark;
    }
    return loaded->node->mark;
}

/* Servers whose settings are checked together; a single one if the configuration has other errors. */
struct tls_check {
    struct load *load;
    struct virtual_server *const *servers;
    size_t count;
    bool alone;
};

/* Returns false for faults that another error may have caused. */
static bool is_reported(const struct tls_check *check, const struct loaded_server *loaded,
                        const struct tls_fault *fault)
{
    if (loaded->tls_checked || (check->alone && !*fault->directive))
        return false;
    return loaded->valid || !str_starts(str_from(fault->directive), STR("ssl_certificate"));
}

static void report_tls_fault(void *owner, const struct tls_fault *fault)
{
    const struct tls_check *check = owner;
    const struct loaded_server *loaded = load_find_server(check->load, check->servers[fault->server]);

    if (is_reported(check, loaded, fault))
        conf_error(check->load->errors, fault_mark(loaded, fault), str_from(fault->hint), "%s", fault->text);
}

/* Returns 0 with the context, or with NULL after reporting all faults; or -ENOMEM. */
static int create_tls_context(struct tls_check *check, struct log *log, struct tls_context **out_tls)
{
    struct load *load = check->load;
    struct tls_settings *settings = arena_zalloc(load->reader.arena, check->count, sizeof(*settings));

    if (!settings)
        return -ENOMEM;
    for (size_t i = 0; i < check->count; i++) {
        /* The stamp precedes the first read of the files, so a change after it is detected for all endpoints. */
        if (check->servers[i]->files_stamp == 0)
            check->servers[i]->files_stamp = tls_files_stamp(&check->servers[i]->tls);
        settings[i] = check->servers[i]->tls;
        settings[i].is_default = i == 0;
    }
    *out_tls = tls_context_load(settings, check->count, log, report_tls_fault, check);
    for (size_t i = 0; i < load->server_count; i++) {
        for (size_t k = 0; k < check->count; k++)
            load->servers[i].tls_checked |= load->servers[i].server == check->servers[k];
    }
    return 0;
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
    struct tls_check check = {load, endpoint->servers, endpoint->server_count, false};

    if (other) {
        endpoint->tls = other->tls;
        endpoint->tls_borrowed = true;
        return 0;
    }
    return skip_endpoint(load, endpoint) ? 0 : create_tls_context(&check, load->log, &endpoint->tls);
}

static void discard_log_line(void *owner, enum log_level level, struct str line)
{
}

/* Checks each server of a rejected configuration separately, to report its TLS errors, too. */
static int check_each_server(struct load *load)
{
    struct log quiet = {.sink = discard_log_line};

    for (size_t i = 0; i < load->server_count; i++) {
        struct loaded_server *loaded = &load->servers[i];
        struct tls_check check = {load, &loaded->server, 1, true};
        struct tls_context *tls = NULL;
        int error;

        if (loaded->tls_checked || !find_ssl_listen(loaded) || skip_server(load, loaded))
            continue;
        error = create_tls_context(&check, &quiet, &tls);
        tls_context_destroy(tls);
        if (error < 0)
            return error;
    }
    return 0;
}

int load_tls(struct load *load)
{
    struct configuration *configuration = load->configuration;

    for (size_t i = 0; i < load->server_count; i++) {
        int error = load_tls_settings(load, &load->servers[i]);

        if (error < 0)
            return error;
    }
    check_certificates(load);
    for (size_t i = 0; i < configuration->endpoint_count && !load->errors->failed; i++) {
        int error = configuration->endpoints[i].ssl ? open_tls(load, &configuration->endpoints[i]) : 0;

        if (error < 0)
            return error;
    }
    return load->errors->failed ? check_each_server(load) : 0;
}

int configuration_check_ktls(const struct configuration *configuration, const struct ktls_support *support,
                             struct log *log)
{
    char described[512];
    struct str text;

    if (ktls_is_supported(support))
        return 0;
    for (size_t i = 0; i < configuration->endpoint_count; i++) {
        const struct endpoint *endpoint = &configuration->endpoints[i];

        for (size_t k = 0; endpoint->ssl && k < endpoint->server_count; k++) {
            if (endpoint->servers[k]->tls.ktls != TLS_KTLS_ON)
                continue;
            text = ktls_describe(support, described, sizeof(described));
            log_write(log, LOG_EMERG,
                      "ssl_ktls is on for server \"" STR_FMT "\" on " STR_FMT ", but not available: " STR_FMT
                      "; ssl_ktls: auto starts without it",
                      STR_ARG(endpoint->servers[k]->name), STR_ARG(endpoint->text), STR_ARG(text));
            return -ENOTSUP;
        }
    }
    return 0;
}
