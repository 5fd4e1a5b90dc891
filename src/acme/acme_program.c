/*
 * Paths, command line and error texts of a request, for all clients.
 */
#include "acme/acme_program.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Accounts of different authorities, or of different addresses, are in different folders. */
bool acme_request_open(struct acme_request *request, const struct acme_order *order, const char *program)
{
    const struct acme_certificate *certificate = order->certificate;
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char text[LIMIT_ACME_URL + LIMIT_ACME_EMAIL + 2], hex[17];
    struct str email = str_or_empty(certificate->settings->email);
    int length = snprintf(text, sizeof(text), "%s " STR_FMT, order->directory, STR_ARG(email));

    request->order = order;
    request->program = program;
    snprintf(request->email, sizeof(request->email), STR_FMT, STR_ARG(email));
    for (size_t i = 0; i < certificate->name_count; i++)
        snprintf(request->names[i], sizeof(request->names[i]), STR_FMT, STR_ARG(certificate->names[i]));
    if (length < 0 || (size_t)length >= sizeof(text) || !SHA256((unsigned char *)text, (size_t)length, digest))
        return false;
    for (int i = 0; i < 8; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return snprintf(request->folder, PATH_MAX, STR_FMT "/clients/%s-%s", STR_ARG(order->acme->state), program, hex) <
           PATH_MAX;
}

void acme_request_start(struct acme_request *request)
{
    const struct acme_order *order = request->order;
    const struct acme_settings *settings = order->certificate->settings;

    request->run = (struct acme_run){.challenges = order->acme->challenges.data,
                                     .challenge_type = acme_challenge_types[settings->challenge],
                                     .environment = order->environment,
                                     .home = request->folder,
                                     .timeout_ms = settings->timeout_ms,
                                     .events = order->events,
                                     .log = order->log};
    acme_run_add(&request->run, request->program);
}

int acme_request_path(struct acme_request *request, char path[PATH_MAX], const char *format, ...)
{
    int length = snprintf(path, PATH_MAX, "%s/", request->folder), added;
    va_list arguments;

    va_start(arguments, format);
    added = length < PATH_MAX ? vsnprintf(path + length, (size_t)(PATH_MAX - length), format, arguments) : PATH_MAX;
    va_end(arguments);
    if (length + added < PATH_MAX)
        return 0;
    snprintf(request->error, request->size, "a path in the state folder is too long");
    return -EINVAL;
}

int acme_request_failed(struct acme_request *request, const char *what, const char *verb, int error)
{
    snprintf(request->error, request->size, "%s cannot be %s (%d: %s)", what, verb, -error, strerror(-error));
    return -EINVAL;
}

int acme_request_ended(struct acme_request *request, int status)
{
    switch (status) {
    case -EINTR:
        return -EINTR;
    case -ENOENT:
        snprintf(request->error, request->size, "the client %s is not installed: apt-get install %s", request->program,
                 request->program);
        break;
    case -ETIMEDOUT:
        snprintf(request->error, request->size, "the client did not end within acme.timeout, and was killed");
        break;
    case -ECHILD:
        snprintf(request->error, request->size, "the client was killed");
        break;
    default:
        if (status < 0)
            return acme_request_failed(request, "the client", "started", status);
        acme_client_cause(&request->run, request->error, request->size);
    }
    return -EINVAL;
}
