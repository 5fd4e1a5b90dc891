/*
 * The directives of TLS to upstream servers: reads their values and creates the TLS context.
 */
#include "upstream/upstream.h"
#include "upstream/upstream_ssl.h"

#include <errno.h>
#include <stdio.h>

const char *const upstream_ssl_protocols[] = {"TLSv1.2", "TLSv1.3", NULL};

int upstream_read_ssl_command(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct tls_command *command = out;
    struct conf_words words;
    int error = conf_read_words(reader, node, &words);

    if (error < 0)
        return error;
    if (words.count == 2) {
        *command = (struct tls_command){words.items[0], words.items[1]};
        return 0;
    }
    conf_error(reader->errors, node->mark, STR("a command as Options PrioritizeChaCha"),
               "the value must be a command of OpenSSL and its value");
    return -EINVAL;
}

static const struct conf_node *get_directive(const struct conf_node *at, const char *prefix, const char *suffix)
{
    char name[64];

    snprintf(name, sizeof(name), "%s%s", prefix, suffix);
    return conf_map_get(at, str_from(name));
}

/* Returns the position of the directive that most likely caused the error. */
static struct conf_mark error_mark(const struct conf_node *at, const char *prefix)
{
    static const char *const suffixes[] = {"_ssl_conf_command", "_ssl_crl", "_ssl_password_file",
                                           "_ssl_certificate_key", "_ssl_certificate", "_ssl_ciphers",
                                           "_ssl_trusted_certificate", "_ssl", "_pass"};

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        const struct conf_node *node = get_directive(at, prefix, suffixes[i]);

        if (node)
            return node->mark;
    }
    return at->mark;
}

/* Returns true if no other setting than the trusted certificates can be the cause of an error. */
static bool only_trusted_is_set(const struct tls_client_settings *settings)
{
    return !str_empty(settings->trusted) && str_empty(settings->certificate) && str_empty(settings->ciphers) &&
           str_empty(settings->crl) && settings->command_count == 0;
}

int upstream_ssl_conf_complete(struct upstream_ssl_conf *conf, const char *prefix, bool used,
                               struct conf_reader *reader, const struct conf_node *at)
{
    const struct conf_node *trusted = get_directive(at, prefix, "_ssl_trusted_certificate");
    struct tls_client_settings *settings = &conf->settings;
    char error[256];

    settings->no_server_name = !conf->server_name;
    settings->no_reuse = !conf->session_reuse;
    settings->commands = conf->commands.items;
    settings->command_count = conf->commands.count;
    if (!trusted && !used)
        return 0;
    if (upstreams_add_tls(reader->upstreams, settings, error, sizeof(error)) == 0)
        return 0;
    if (trusted && only_trusted_is_set(settings))
        conf_error(reader->errors, trusted->mark, STR("a PEM file of certificates"),
                   "\"" STR_FMT "\" cannot be read as trusted certificates: %s", STR_ARG(settings->trusted), error);
    else
        conf_error(reader->errors, error_mark(at, prefix),
                   STR("files must be in PEM format, as /etc/ssl/client.pem"),
                   "TLS to the server cannot be set up: %s", error);
    return -EINVAL;
}
