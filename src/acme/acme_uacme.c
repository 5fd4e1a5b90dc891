/*
 * uacme(1). Its folder CONFDIR contains private/key.pem (account), private/NAME/key.pem and NAME/cert.pem; `account`
 * records a registered account. The hook publishes the challenges.
 */
#include "acme/acme_file.h"
#include "acme/acme_program.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <unistd.h>

static void start_run(struct acme_request *request)
{
    const char *const common[] = {"-v", "-a", request->order->directory, "-c", request->folder, "-y"};

    acme_request_start(request);
    for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
        acme_run_add(&request->run, common[i]);
}

static int register_account(struct acme_request *request, const char *account)
{
    const struct acme_settings *settings = request->order->certificate->settings;
    char binding[2 * LIMIT_ACME_EAB + 2];
    int status;

    if (access(account, F_OK) == 0)
        return 0;
    start_run(request);
    snprintf(binding, sizeof(binding), STR_FMT ":" STR_FMT, STR_ARG(settings->eab_key_id), STR_ARG(settings->eab_key));
    if (!str_empty(settings->eab_key_id)) {
        acme_run_add(&request->run, "-e");
        acme_run_add(&request->run, binding);
    }
    acme_run_add(&request->run, "new");
    if (*request->email)
        acme_run_add(&request->run, request->email);
    status = acme_client_run(&request->run);
    OPENSSL_cleanse(binding, sizeof(binding));
    /* An interrupted run may have registered the account. */
    if (status != 0 && strstr(request->run.output, "Account already exists"))
        status = 0;
    if (status != 0)
        return acme_request_ended(request, status);
    status = acme_file_replace(account, STR("registered\n"));
    return status < 0 ? acme_request_failed(request, account, "written", status) : 0;
}

static void add_key_type(struct acme_run *run, int key_type)
{
    static const char *const types[][2] = {
        [ACME_EC256] = {"EC", "256"},
        [ACME_EC384] = {"EC", "384"},
        [ACME_RSA2048] = {"RSA", "2048"},
        [ACME_RSA4096] = {"RSA", "4096"},
    };

    acme_run_add(run, "-t");
    acme_run_add(run, types[key_type][0]);
    acme_run_add(run, "-b");
    acme_run_add(run, types[key_type][1]);
}

/* The old key of the client's folder is removed, so that each certificate has a new one. */
static int issue_certificate(struct acme_request *request, const char *account)
{
    const struct acme_certificate *certificate = request->order->certificate;
    struct acme_run *run = &request->run;
    int status;

    start_run(request);
    add_key_type(run, certificate->settings->key_type);
    acme_run_add(run, "-f");
    acme_run_add(run, "-o");
    acme_run_add(run, "-h");
    acme_run_add(run, request->order->hook);
    acme_run_add(run, "issue");
    for (size_t i = 0; i < certificate->name_count; i++)
        acme_run_add(run, request->names[i]);
    if (unlink(request->key) < 0 && errno != ENOENT)
        return acme_request_failed(request, request->key, "removed", -errno);
    status = acme_client_run(run);
    if (status == 0)
        return 0;
    /* The authority may have deleted the account: the next attempt registers it again. */
    if (status != -EINTR)
        unlink(account);
    return acme_request_ended(request, status);
}

static int issue_by_uacme(struct acme_request *request)
{
    char account[PATH_MAX];
    int result = acme_request_path(request, account, "account");

    if (result == 0)
        result = acme_request_path(request, request->key, "private/%s/key.pem", request->names[0]);
    if (result == 0)
        result = acme_request_path(request, request->chain, "%s/cert.pem", request->names[0]);
    if (result == 0)
        result = register_account(request, account);
    return result == 0 ? issue_certificate(request, account) : result;
}

const struct acme_program acme_program_uacme = {.name = "uacme", .issue = issue_by_uacme};
