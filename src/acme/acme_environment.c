/*
 * Reads, checks and exports the variables of acme.environment.
 */
#include "acme/acme_environment.h"

#include "acme/acme_file.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool name_valid(struct str name)
{
    for (size_t i = 0; i < name.length; i++) {
        char c = str_lower(name.data[i]);

        if (!(c >= 'a' && c <= 'z') && c != '_' && (i == 0 || !(c >= '0' && c <= '9')))
            return false;
    }
    return !str_empty(name);
}

static struct str without_quotes(struct str value)
{
    bool quoted = value.length >= 2 && (value.data[0] == '"' || value.data[0] == '\'') &&
                  value.data[value.length - 1] == value.data[0];

    return quoted ? str_slice(value, 1, value.length - 1) : value;
}

/* Appends "NAME=VALUE", which is not longer than the line, and NUL in the place of the line's end. */
static bool add_line(struct acme_environment *environment, struct str line)
{
    struct str value, name;

    if (str_ends(line, STR("\r")))
        line.length--;
    line = str_trim(line);
    if (str_empty(line) || line.data[0] == '#')
        return true;
    value = line;
    name = str_cut(&value, '=');
    if (!value.data || !name_valid(name) || memchr(value.data, '\0', value.length))
        return false;
    value = without_quotes(value);
    environment->length += (size_t)sprintf(environment->text + environment->length, STR_FMT "=" STR_FMT,
                                           STR_ARG(name), STR_ARG(value)) + 1;
    return true;
}

static void parse_lines(const char *path, struct str text, struct acme_environment *environment)
{
    environment->text = malloc(text.length + 2);
    if (!environment->text) {
        snprintf(environment->error, sizeof(environment->error), "acme.environment: out of memory");
        return;
    }
    for (unsigned number = 1; text.data; number++) {
        if (add_line(environment, str_cut(&text, '\n')))
            continue;
        acme_environment_finish(environment);
        snprintf(environment->error, sizeof(environment->error),
                 "acme.environment: line %u of \"%s\" is not NAME=VALUE; delete words such as \"export\"", number,
                 path);
        return;
    }
}

void acme_environment_read(const char *path, struct acme_environment *out_environment)
{
    struct buffer text = {0};
    struct stat state;
    int error;

    *out_environment = (struct acme_environment){.text = NULL};
    if (!*path)
        return;
    error = stat(path, &state) < 0 ? -errno : S_ISREG(state.st_mode) ? acme_file_load(path, &text) : -EINVAL;
    if (error < 0)
        snprintf(out_environment->error, sizeof(out_environment->error),
                 "acme.environment: \"%s\" cannot be read (%d: %s)", path, -error, strerror(-error));
    else if (state.st_mode & 077)
        snprintf(out_environment->error, sizeof(out_environment->error),
                 "acme.environment: others than the owner of \"%s\" have access to it: chmod 600", path);
    else
        parse_lines(path, str_of(text.data, text.length), out_environment);
    OPENSSL_cleanse(text.data, text.length);
    buffer_finish(&text);
}

void acme_environment_finish(struct acme_environment *environment)
{
    if (environment->text)
        OPENSSL_cleanse(environment->text, environment->length);
    free(environment->text);
    *environment = (struct acme_environment){.text = NULL};
}

int acme_environment_export(const struct acme_environment *environment)
{
    for (size_t at = 0; at < environment->length; at += strlen(environment->text + at) + 1) {
        if (putenv(environment->text + at) != 0)
            return -errno;
    }
    return 0;
}
