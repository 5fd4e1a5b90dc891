/*
 * The text of the configuration that `sluice serve` generates.
 */
#include "command/serve.h"

#include <stdio.h>

/* Quotes a text, so that the loader interprets neither YAML escapes nor environment variables in it. */
static int add_quoted(struct buffer *out, const char *text)
{
    int error = buffer_append(out, STR("\""));

    for (; *text && error == 0; text++) {
        if (*text == '"' || *text == '\\')
            error = buffer_printf(out, "\\%c", *text);
        else if (*text == '$' && text[1] == '{')
            error = buffer_append(out, STR("$$"));
        else if ((unsigned char)*text < ' ' || *text == 0x7f)
            error = buffer_printf(out, "\\x%02x", (unsigned char)*text);
        else
            error = buffer_append(out, str_of(text, 1));
    }
    return error < 0 ? error : buffer_append(out, STR("\"\n"));
}

static int add_certificate(const struct serve_settings *settings, struct buffer *out)
{
    int error;

    if (settings->plain)
        return 0;
    if (settings->acme)
        return buffer_append(out, STR("      ssl_certificate: acme\n"));
    if (!settings->certificate)
        return buffer_append(out, STR("      ssl_certificate: self-signed\n"));
    error = buffer_append(out, STR("      ssl_certificate: "));
    if (error == 0)
        error = add_quoted(out, settings->certificate);
    if (error == 0 && settings->key)
        error = buffer_append(out, STR("      ssl_certificate_key: "));
    return error == 0 && settings->key ? add_quoted(out, settings->key) : error;
}

static int add_acme(const struct serve_settings *settings, struct buffer *out)
{
    int error = settings->acme ? buffer_append(out, STR("  acme:\n    challenge: tls-alpn-01\n    state: ")) : 0;

    if (error == 0 && settings->acme)
        error = add_quoted(out, settings->acme_state);
    if (error < 0 || !settings->acme || !settings->acme_directory)
        return error;
    error = buffer_append(out, STR("    directory: "));
    return error < 0 ? error : add_quoted(out, settings->acme_directory);
}

static int add_server(const struct serve_settings *settings, struct buffer *out)
{
    const char *own = settings->open ? "0.0.0.0" : "127.0.0.1";
    const char *ssl = settings->plain ? "" : " ssl";
    char other[48] = "";

    if (settings->ip6)
        snprintf(other, sizeof(other), ", \"[::%s]:%u%s\"", settings->open ? "" : "1", settings->port, ssl);
    return buffer_printf(out,
                         "  server:\n"
                         "    - listen: [\"%s:%u%s\"%s]\n"
                         "      server_name: [%s%s%s%s]\n"
                         "      root: .\n",
                         own, settings->port, ssl, other, settings->acme ? "" : "localhost, ",
                         settings->name || settings->acme ? "\"" : "",
                         settings->acme ? settings->acme : settings->name ? settings->name : "",
                         settings->name || settings->acme ? "\"" : "");
}

int serve_configuration(const struct serve_settings *settings, struct buffer *out)
{
    int error = buffer_printf(out,
                              "error_log: {path: stderr, level: %s}\n"
                              "http:\n"
                              "  access_log: %s\n",
                              settings->acme ? "notice" : "warn",
                              settings->plain ? "off" : "{path: stdout, format: main}");

    if (error == 0)
        error = add_acme(settings, out);
    if (error == 0)
        error = add_server(settings, out);
    if (error == 0)
        error = add_certificate(settings, out);
    if (error == 0 && settings->autoindex)
        error = buffer_append(out, STR("      autoindex: on\n"));
    if (error == 0 && settings->spa)
        error =
            buffer_append(out, STR("      location:\n        /: {try_files: [$uri, $uri/, /index.html, =404]}\n"));
    return error;
}
