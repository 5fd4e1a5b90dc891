/*
 * The directives of proxying, read and checked.
 */
#include "proxy.h"

#include "base/limits.h"

#include <errno.h>
#include <stddef.h>

#define AT(field)  offsetof(struct proxy_conf, field)
#define PASS_HINT  STR("write: proxy_pass: http://127.0.0.1:9001, http://backend/path/, or unix:/run/app.sock")
#define FIELD_HINT STR("write: proxy_set_header: [X-Request-Id $request_id, {Host: $host}]")

static int refuse_pass(struct conf_reader *reader, const struct conf_node *node, struct str text)
{
    conf_error(reader->errors, node->mark, PASS_HINT, "\"" STR_FMT "\" is no address to pass requests to",
               STR_ARG(text));
    return -EINVAL;
}

static int read_pass(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct proxy_pass pass = {.of_location = reader->scope == SCOPE_LOCATION};
    struct proxy_pass *into = out;
    int error = conf_read_template(reader, node, &pass.text);
    struct str text;

    if (error < 0)
        return error;
    text = template_text(pass.text);
    if (template_constant(pass.text)) {
        if (proxy_target_parse(text, &pass.target) < 0)
            return refuse_pass(reader, node, text);
        pass.upstream = upstreams_target(reader->upstreams, pass.target.authority,
                                         proxy_target_port(&pass.target), &error);
        if (!pass.upstream)
            return error == -ENOMEM ? error : refuse_pass(reader, node, text);
    }
    *into = pass;
    return 0;
}

/* Fields that are of one connection: Upgrade and Connection are seen to without being asked for. */
static bool is_own(struct str name)
{
    static const char *const names[] = {"Content-Length", "Transfer-Encoding", "Keep-Alive", "TE", "Trailer",
                                        "Expect"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_equal_nocase(name, str_from(names[i])))
            return true;
    }
    return false;
}

static int check_name(struct conf_reader *reader, struct conf_mark mark, struct str name)
{
    if (!h1_is_token(name)) {
        conf_error(reader->errors, mark, FIELD_HINT, "\"" STR_FMT "\" is no name of a header", STR_ARG(name));
        return -EINVAL;
    }
    if (is_own(name)) {
        conf_error(reader->errors, mark, STR("the server writes it itself"),
                   "proxy_set_header cannot set " STR_FMT, STR_ARG(name));
        return -EINVAL;
    }
    return 0;
}

static int read_fields_map(struct conf_reader *reader, const struct conf_node *node,
                           struct proxy_fields *fields)
{
    int error = 0;

    fields->items = arena_zalloc(reader->arena, node->count + 1, sizeof(*fields->items));
    if (!fields->items)
        return -ENOMEM;
    for (size_t i = 0; i < node->count && error == 0; i++) {
        const struct conf_pair *pair = &node->pairs[i];
        struct proxy_field *field = &fields->items[fields->count++];

        field->name = pair->key->text;
        error = check_name(reader, pair->key->mark, field->name);
        if (error == 0)
            error = conf_read_template(reader, pair->value, &field->value);
    }
    return error;
}

/* "Name value", or a map from names to values. */
static int read_fields(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct proxy_fields *fields = out;
    struct conf_words words;
    int error;

    if (node->kind == CONF_MAP)
        return read_fields_map(reader, node, fields);
    error = conf_read_words(reader, node, &words);
    if (error < 0)
        return error;
    if (words.count != 2) {
        conf_error(reader->errors, node->mark, FIELD_HINT,
                   "proxy_set_header takes a name and a value (\"\" takes the field away)");
        return -EINVAL;
    }
    fields->items = arena_zalloc(reader->arena, 1, sizeof(*fields->items));
    if (!fields->items)
        return -ENOMEM;
    fields->count = 1;
    fields->items->name = words.items[0];
    error = check_name(reader, node->mark, words.items[0]);
    return error < 0 ? error : conf_read_template_word(reader, node, words.items[1], &fields->items->value);
}

/* Where requests may go to https://. */
static bool wants_tls(const struct proxy_pass *pass)
{
    struct str text = pass->text ? template_text(pass->text) : STR("");

    if (!pass->text || pass->upstream)
        return pass->target.https;
    return !str_starts(text, STR("http://")) && !str_starts(text, STR("unix:"));
}

/* The directive that is to blame, as far as that can be told. */
static struct conf_mark ssl_mark(const struct conf_node *at)
{
    static const char *const names[] = {"proxy_ssl_certificate_key", "proxy_ssl_certificate", "proxy_ssl_ciphers",
                                        "proxy_ssl_trusted_certificate", "proxy_pass"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct conf_node *node = conf_map_get(at, str_from(names[i]));

        if (node)
            return node->mark;
    }
    return at->mark;
}

/* Made now: a file that cannot be read is better told than with the first request, and workers may not read keys. */
static int make_tls(struct proxy_conf *conf, struct conf_reader *reader, const struct conf_node *at)
{
    const struct conf_node *trusted = conf_map_get(at, STR("proxy_ssl_trusted_certificate"));
    char error[256];

    conf->ssl.no_server_name = !conf->ssl_server_name;
    conf->ssl.no_reuse = !conf->ssl_session_reuse;
    if (!trusted && !wants_tls(&conf->pass))
        return 0;
    if (upstreams_trust(reader->upstreams, &conf->ssl, error, sizeof(error)) == 0)
        return 0;
    if (trusted && !str_empty(conf->ssl.trusted) && str_empty(conf->ssl.certificate) && str_empty(conf->ssl.ciphers))
        conf_error(reader->errors, trusted->mark, STR("a file of PEM certificates"),
                   "\"" STR_FMT "\" cannot be trusted: %s", STR_ARG(conf->ssl.trusted), error);
    else
        conf_error(reader->errors, ssl_mark(at), STR("files of PEM, as proxy_ssl_certificate: /etc/ssl/client.pem"),
                   "TLS to the server cannot be set up: %s", error);
    return -EINVAL;
}

int proxy_conf_check(void *conf, struct conf_reader *reader, const struct conf_node *at)
{
    struct proxy_conf *own = conf;
    int error = 0;

    if (own->pass.of_location && !reader->laid_over && !conf_map_get(at, STR("proxy_pass")))
        own->pass = (struct proxy_pass){0};
    error = make_tls(own, reader, at);
    if (error == 0 && !own->remote_addr)
        error = conf_read_template_word(reader, at, STR("$remote_addr"), &own->remote_addr);
    if (error == 0 && !own->peer_addr)
        error = conf_read_template_word(reader, at, STR("$realip_remote_addr"), &own->peer_addr);
    if (error == 0 && !own->scheme)
        error = conf_read_template_word(reader, at, STR("$scheme"), &own->scheme);
    return error;
}

/* In the order of enum proxy_next. */
static const char *const next_words[] = {
    "error",    "timeout",  "invalid_header", "non_idempotent", "off",      "http_403", "http_404",
    "http_429", "http_500", "http_502",       "http_503",       "http_504", NULL};
static const char *const protocols[] = {"TLSv1.2", "TLSv1.3", NULL};
static const char *const versions[] = {"1.1", NULL};

const struct directive proxy_directives[] = {
    {.name = "proxy_pass",
     .scopes = SCOPE_LOCATION,
     .type = DIRECTIVE_CUSTOM,
     .offset = AT(pass),
     .row_size = sizeof(struct proxy_pass),
     .row = read_pass,
     .example = "proxy_pass: http://127.0.0.1:9001",
     .help = "Pass requests to a server: http:// or https:// with an address, a name or an upstream, or "
             "unix: and a "
             "path. With a "
             "URI behind it, that takes the place of the location's prefix; made of variables, it is the "
             "whole URI."},
    {.name = "proxy_set_header",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .merge = MERGE_APPEND,
     .offset = AT(set_headers),
     .row_size = sizeof(struct proxy_fields),
     .row = read_fields,
     .example = "proxy_set_header: [X-Request-Id $request_id, {Host: $host}]",
     .help =
         "Header fields of the request as it is passed on; an empty value takes one away. X-Forwarded-For, "
         "X-Forwarded-Proto, X-Forwarded-Host, Forwarded and Via are set without being asked for.",
     .schema = "{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"object\"}]}"},
    {.name = "proxy_hide_header",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_WORDS,
     .merge = MERGE_APPEND,
     .offset = AT(hide_headers),
     .example = "proxy_hide_header: [X-Powered-By, X-Runtime]",
     .help = "Header fields of an answer that are not passed on, beside Date, Server, X-Pad and X-Accel-*."},
    {.name = "proxy_pass_header",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_WORDS,
     .merge = MERGE_APPEND,
     .offset = AT(pass_headers),
     .example = "proxy_pass_header: Server",
     .help = "Header fields of an answer that are passed on although they are kept back by themselves."},
    {.name = "proxy_connect_timeout",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = AT(connect_timeout_ms),
     .fallback = "60s",
     .help = "How long a connection to the server may take."},
    {.name = "proxy_send_timeout",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = AT(send_timeout_ms),
     .fallback = "60s",
     .help = "How long the server may take nothing of a request between two writes."},
    {.name = "proxy_read_timeout",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = AT(read_timeout_ms),
     .fallback = "60s",
     .help = "How long the server may say nothing between two reads."},
    {.name = "proxy_buffer_size",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SIZE,
     .offset = AT(buffer_size),
     .fallback = "16k",
     .low = 1024,
     .high = LIMIT_REQUEST_HEAD,
     .help = "The longest head of an answer."},
    {.name = "proxy_next_upstream",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_FLAGS,
     .offset = AT(next),
     .choices = next_words,
     .fallback = "error timeout",
     .example = "proxy_next_upstream: [error, timeout, http_503]",
     .help = "When another server of the group is asked. Never once a part of the client's body was passed "
             "on; POST and "
             "PATCH only with non_idempotent, or where no connection came about."},
    {.name = "proxy_next_upstream_tries",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(next_tries),
     .fallback = "0",
     .help = "How many servers are asked for one request; 0: all."},
    {.name = "proxy_next_upstream_timeout",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_DURATION,
     .offset = AT(next_timeout_ms),
     .fallback = "0",
     .help = "How long another server is asked, from the beginning; 0: no limit."},
    {.name = "proxy_ssl_verify",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(ssl.verify),
     .fallback = "on",
     .help = "Whether the certificate of an https:// server must be trusted and name it. On unless it is "
             "turned off."},
    {.name = "proxy_ssl_trusted_certificate",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_PATH,
     .offset = AT(ssl.trusted),
     .example = "proxy_ssl_trusted_certificate: /etc/ssl/internal-ca.pem",
     .help = "A PEM file with the certificates that are trusted, in the place of the system's store."},
    {.name = "proxy_ssl_certificate",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_PATH,
     .offset = AT(ssl.certificate),
     .example = "proxy_ssl_certificate: /etc/ssl/client.pem",
     .help = "A PEM file with the certificate, and its chain, that is shown to servers who ask for one."},
    {.name = "proxy_ssl_certificate_key",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_PATH,
     .offset = AT(ssl.key),
     .example = "proxy_ssl_certificate_key: /etc/ssl/client.key",
     .help = "Its key, where that does not stand in the same file. It is read before root is given up."},
    {.name = "proxy_ssl_protocols",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_FLAGS,
     .offset = AT(ssl.protocols),
     .choices = protocols,
     .fallback = "TLSv1.2 TLSv1.3",
     .help = "Protocols that are spoken to servers."},
    {.name = "proxy_ssl_ciphers",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEXT,
     .offset = AT(ssl.ciphers),
     .example = "proxy_ssl_ciphers: ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_128_GCM_SHA256",
     .help = "Ciphers that are offered to servers: OpenSSL's names, of TLS 1.2 and of TLS 1.3."},
    {.name = "proxy_ssl_verify_depth",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_NUMBER,
     .offset = AT(ssl.verify_depth),
     .fallback = "0",
     .high = 100,
     .help = "Certificates that may stand between the server's and a trusted one; 0: OpenSSL's own limit."},
    {.name = "proxy_ssl_server_name",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(ssl_server_name),
     .fallback = "on",
     .help = "Whether the server is told whom it is asked for (SNI). On unless it is turned off."},
    {.name = "proxy_ssl_session_reuse",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(ssl_session_reuse),
     .fallback = "on",
     .help = "Whether a connection takes up the session of the one before, with a shorter handshake."},
    {.name = "proxy_ssl_name",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEMPLATE,
     .offset = AT(ssl_name),
     .example = "proxy_ssl_name: app.internal",
     .help = "Whom the certificate must name, and SNI with it, where that is not the host of proxy_pass."},
    {.name = "proxy_ignore_client_abort",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(ignore_client_abort),
     .fallback = "off",
     .help = "Go on with a request whose client has ended its side of the connection."},
    {.name = "proxy_redirect",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(redirects),
     .row_size = sizeof(struct proxy_rewrite),
     .row = proxy_read_redirect,
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .example = "proxy_redirect: [default, http://internal:8000/ /]",
     .help = "What a Location of the answer begins with, and what takes that place; the first that fits. "
             "default, which "
             "holds where nothing is said: what proxy_pass says becomes the location's prefix, unless it has "
             "variables. "
             "off: as it comes."},
    {.name = "proxy_cookie_domain",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(cookie_domains),
     .row_size = sizeof(struct proxy_rewrite),
     .row = proxy_read_cookie_pair,
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .example = "proxy_cookie_domain: internal.example $host",
     .help = "The domain of a Set-Cookie, and what takes its place; the first that fits."},
    {.name = "proxy_cookie_path",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(cookie_paths),
     .row_size = sizeof(struct proxy_rewrite),
     .row = proxy_read_cookie_pair,
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .example = "proxy_cookie_path: /app/ /",
     .help = "What the path of a Set-Cookie begins with, and what takes that place; the first that fits."},
    {.name = "proxy_cookie_flags",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_REPEAT,
     .offset = AT(cookie_flags),
     .row_size = sizeof(struct proxy_flags),
     .row = proxy_read_cookie_flags,
     .schema = "{\"type\": [\"string\", \"boolean\"]}",
     .example = "proxy_cookie_flags: session secure httponly samesite=lax",
     .help = "A cookie, and what its Set-Cookie is to say: secure, httponly, samesite=strict, =lax or =none; "
             "with no before "
             "it, what it is not to say."},
    {.name = "proxy_method",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_TEMPLATE,
     .offset = AT(method),
     .example = "proxy_method: POST",
     .help = "The method that the server is asked with, in the place of the client's."},
    {.name = "proxy_intercept_errors",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_SWITCH,
     .offset = AT(intercept_errors),
     .fallback = "off",
     .help = "Answers from 300 on that error_page names are answered by it, and not passed on."},
    {.name = "proxy_http_version",
     .scopes = SCOPE_SITE,
     .type = DIRECTIVE_CHOICE,
     .offset = AT(http_version),
     .choices = versions,
     .fallback = "1.1",
     .help = "Always 1.1, with connections kept open; accepted for nginx's sake."},
    {0},
};
