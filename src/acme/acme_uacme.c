/*
 * uacme(1). Its folder CONFDIR contains private/key.pem (account), private/NAME/key.pem and NAME/cert.pem; `account`
 * records a registered account.
 */
#include "acme/acme_uacme.h"

#include "acme/acme_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct uacme {
    const struct acme_order *order;
    char folder[PATH_MAX];          /* CONFDIR */
    char account[PATH_MAX];
    char key[PATH_MAX], chain[PATH_MAX];
    char email[LIMIT_ACME_EMAIL + 1];
    char names[LIMIT_ACME_NAMES][LIMIT_ACME_NAME + 1];
    struct acme_run run;
};

/* Accounts of different authorities, or of different addresses, are in different folders. */
static bool set_paths(struct uacme *uacme)
{
    const struct acme_order *order = uacme->order;
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char text[LIMIT_ACME_URL + LIMIT_ACME_EMAIL + 2], hex[17];
    const struct str state = order->acme->state, name = order->certificate->name;
    struct str email = str_or_empty(order->certificate->settings->email);
    int length = snprintf(text, sizeof(text), "%s " STR_FMT, order->directory, STR_ARG(email));

    if (length < 0 || (size_t)length >= sizeof(text) || !SHA256((unsigned char *)text, (size_t)length, digest))
        return false;
    for (int i = 0; i < 8; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return snprintf(uacme->folder, PATH_MAX, STR_FMT "/clients/uacme-%s", STR_ARG(state), hex) < PATH_MAX &&
           snprintf(uacme->account, PATH_MAX, "%s/account", uacme->folder) < PATH_MAX &&
           snprintf(uacme->key, PATH_MAX, "%s/private/" STR_FMT "/key.pem", uacme->folder, STR_ARG(name)) < PATH_MAX &&
           snprintf(uacme->chain, PATH_MAX, "%s/" STR_FMT "/cert.pem", uacme->folder, STR_ARG(name)) < PATH_MAX;
}

static void start_run(struct uacme *uacme)
{
    const struct acme_order *order = uacme->order;
    const char *const common[] = {"uacme", "-v", "-a", order->directory, "-c", uacme->folder, "-y"};

    uacme->run = (struct acme_run){.challenges = order->acme->challenges.data,
                                   .challenge_type = acme_challenge_types[order->certificate->settings->challenge],
                                   .home = uacme->folder,
                                   .timeout_ms = order->certificate->settings->timeout_ms,
                                   .events = order->events,
                                   .log = order->log};
    for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
        acme_run_add(&uacme->run, common[i]);
}

static int describe_failure(struct uacme *uacme, int status, char *error, size_t size)
{
    static const struct {
        int status;
        const char *text;
    } causes[] = {
        {-ENOENT, "the client uacme is not installed: apt-get install uacme"},
        {-ETIMEDOUT, "the client did not end within acme.timeout, and was killed"},
        {-ECHILD, "the client was killed"},
    };

    if (status == -EINTR)
        return -EINTR;
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        if (status == causes[i].status)
            snprintf(error, size, "%s", causes[i].text);
    }
    if (status > 0)
        acme_client_cause(&uacme->run, error, size);
    else if (!*error)
        snprintf(error, size, "the client cannot be started (%d: %s)", -status, strerror(-status));
    return -EINVAL;
}

static int register_account(struct uacme *uacme, char *error, size_t size)
{
    const struct acme_settings *settings = uacme->order->certificate->settings;
    char binding[2 * LIMIT_ACME_EAB + 2];
    int status;

    if (access(uacme->account, F_OK) == 0)
        return 0;
    start_run(uacme);
    snprintf(binding, sizeof(binding), STR_FMT ":" STR_FMT, STR_ARG(settings->eab_key_id), STR_ARG(settings->eab_key));
    if (!str_empty(settings->eab_key_id)) {
        acme_run_add(&uacme->run, "-e");
        acme_run_add(&uacme->run, binding);
    }
    acme_run_add(&uacme->run, "new");
    snprintf(uacme->email, sizeof(uacme->email), STR_FMT, STR_ARG(str_or_empty(settings->email)));
    if (*uacme->email)
        acme_run_add(&uacme->run, uacme->email);
    status = acme_client_run(&uacme->run);
    OPENSSL_cleanse(binding, sizeof(binding));
    /* An interrupted run may have registered the account. */
    if (status != 0 && strstr(uacme->run.output, "Account already exists"))
        status = 0;
    if (status != 0)
        return describe_failure(uacme, status, error, size);
    status = acme_file_replace(uacme->account, STR("registered\n"));
    if (status < 0)
        snprintf(error, size, "%s cannot be written (%d: %s)", uacme->account, -status, strerror(-status));
    return status < 0 ? -EINVAL : 0;
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
static int issue_certificate(struct uacme *uacme, char *error, size_t size)
{
    const struct acme_certificate *certificate = uacme->order->certificate;
    struct acme_run *run = &uacme->run;
    int status;

    start_run(uacme);
    add_key_type(run, certificate->settings->key_type);
    acme_run_add(run, "-f");
    acme_run_add(run, "-o");
    acme_run_add(run, "-h");
    acme_run_add(run, uacme->order->hook);
    acme_run_add(run, "issue");
    for (size_t i = 0; i < certificate->name_count; i++) {
        snprintf(uacme->names[i], sizeof(uacme->names[i]), STR_FMT, STR_ARG(certificate->names[i]));
        acme_run_add(run, uacme->names[i]);
    }
    if (unlink(uacme->key) < 0 && errno != ENOENT)
        return describe_failure(uacme, -errno, error, size);
    status = acme_client_run(run);
    if (status == 0)
        return 0;
    /* The authority may have deleted the account: the next attempt registers it again. */
    if (status != -EINTR)
        unlink(uacme->account);
    return describe_failure(uacme, status, error, size);
}

static int install_certificate(struct uacme *uacme, char *error, size_t size)
{
    const struct acme_certificate *certificate = uacme->order->certificate;
    int result = acme_file_install(certificate, uacme->chain, uacme->key);

    if (result == 0) {
        unlink(uacme->key); /* the installed file has the only copy */
        return 0;
    }
    if (result == -EINVAL)
        snprintf(error, size, "the client wrote a certificate without its key or without all names");
    else
        snprintf(error, size, STR_FMT " cannot be written (%d: %s)", STR_ARG(certificate->file), -result,
                 strerror(-result));
    return -EINVAL;
}

static int request_certificate(struct uacme *uacme, char *error, size_t size)
{
    int result;

    if (!set_paths(uacme)) {
        snprintf(error, size, "a path in the state folder is too long");
        return -EINVAL;
    }
    if (mkdir(uacme->folder, 0700) < 0 && errno != EEXIST) {
        snprintf(error, size, "%s cannot be created (%d: %s)", uacme->folder, errno, strerror(errno));
        return -EINVAL;
    }
    result = register_account(uacme, error, size);
    if (result == 0)
        result = issue_certificate(uacme, error, size);
    return result == 0 ? install_certificate(uacme, error, size) : result;
}

int acme_uacme_request(const struct acme_order *order, char *error, size_t size)
{
    struct uacme *uacme = calloc(1, sizeof(*uacme));
    int result;

    *error = '\0';
    if (!uacme) {
        snprintf(error, size, "out of memory");
        return -EINVAL;
    }
    uacme->order = order;
    result = request_certificate(uacme, error, size);
    free(uacme);
    return result;
}
