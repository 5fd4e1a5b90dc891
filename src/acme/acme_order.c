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

static int run_request(struct acme_request *request, const struct acme_order *order)
{
    const struct acme_program *program = programs[order->certificate->settings->client];
    int result;

    if (order->environment && *order->environment->error) {
        snprintf(request->error, request->size, "%s", order->environment->error);
        return -EINVAL;
    }
    if (!acme_request_open(request, order, program->name)) {
        snprintf(request->error, request->size, "a path in the state folder is too long");
        return -EINVAL;
    }
    if (mkdir(request->folder, 0700) < 0 && errno != EEXIST)
        return acme_request_failed(request, request->folder, "created", -errno);
    result = program->issue(request);
    return result == 0 ? install_certificate(request) : result;
}

int acme_order_request(const struct acme_order *order, char *error, size_t size)
{
    struct acme_request *request = calloc(1, sizeof(*request));
    int result;

    *error = '\0';
    if (!request) {
        snprintf(error, size, "out of memory");
        return -EINVAL;
    }
    request->error = error;
    request->size = size;
    result = run_request(request, order);
    free(request);
    return result;
}
