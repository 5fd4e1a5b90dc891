/*
 * The table of clients, and the steps that they have in common.
 */
#include "acme/acme_order.h"

#include "acme/acme_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct acme_program *const programs[] = {[ACME_UACME] = &acme_program_uacme,
                                                      [ACME_LEGO] = &acme_program_lego};

static int install_certificate(struct acme_request *request)
{
    const struct acme_certificate *certificate = request->order->certificate;
    int result = acme_file_install(certificate, request->chain, request->key);

    if (result == 0) {
        unlink(request->key); /* the installed file has the only copy */
        return 0;
    }
    if (result != -EINVAL)
        return acme_request_failed(request, certificate->file.data, "written", result);
    snprintf(request->error, request->size, "the client wrote a certificate without its key or without all names");
    return -EINVAL;
}

static const struct acme_program *program_of(const struct acme_order *order)
{
    return programs[order->certificate->settings->client];
}

/* Sets paths and names, and creates the folder of the client. */
static int prepare_request(struct acme_request *request, const struct acme_order *order)
{
    if (order->environment && *order->environment->error) {
        snprintf(request->error, request->size, "%s", order->environment->error);
        return -EINVAL;
    }
    if (!acme_request_open(request, order, program_of(order)->name)) {
        snprintf(request->error, request->size, "a path in the state folder is too long");
        return -EINVAL;
    }
    if (mkdir(request->folder, 0700) < 0 && errno != EEXIST)
        return acme_request_failed(request, request->folder, "created", -errno);
    return 0;
}

static struct acme_request *create_request(char *error, size_t size)
{
    struct acme_request *request = calloc(1, sizeof(*request));

    snprintf(error, size, "%s", request ? "" : "out of memory");
    if (request) {
        request->error = error;
        request->size = size;
    }
    return request;
}

int acme_order_request(const struct acme_order *order, char *error, size_t size)
{
    struct acme_request *request = create_request(error, size);
    int result = request ? prepare_request(request, order) : -EINVAL;

    if (result == 0)
        result = program_of(order)->issue(request);
    if (result == 0)
        result = install_certificate(request);
    free(request);
    return result;
}

bool acme_order_supports_window(const struct acme_order *order)
{
    char error[LIMIT_ACME_ERROR];
    struct acme_request *request = program_of(order)->supports_window ? create_request(error, sizeof(error)) : NULL;
    bool supports = request && prepare_request(request, order) == 0 && program_of(order)->supports_window(request);

    free(request);
    return supports;
}

int acme_order_renew(const struct acme_order *order, enum acme_window *out_window, char *error, size_t size)
{
    struct acme_request *request = create_request(error, size);
    int result = request ? prepare_request(request, order) : -EINVAL;

    if (result == 0)
        result = program_of(order)->renew(request);
    *out_window = request ? request->window : ACME_WINDOW_UNKNOWN;
    if (result == 1 && install_certificate(request) < 0)
        result = -EINVAL;
    free(request);
    return result;
}
