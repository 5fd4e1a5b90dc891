/*
 * lego(1), version 4. Its folder (--path) contains accounts/ and certificates/NAME.crt and NAME.key. For http-01 it
 * writes the challenges into the folder of a web server: webroot/.well-known/acme-challenge is a link to challenges/.
 */
#include "acme/acme_file.h"
#include "acme/acme_program.h"

#include <errno.h>
#include <ftw.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WALK_DESCRIPTORS = 8 };

/* Terminated texts of the command line. */
struct texts {
    char webroot[PATH_MAX];
    char provider[LIMIT_ACME_PROVIDER + 1];
    char resolvers[LIMIT_ACME_RESOLVERS][LIMIT_ACME_RESOLVER + 1];
    char key_id[LIMIT_ACME_EAB + 1], key[LIMIT_ACME_EAB + 1];
};

static int make_folder(struct acme_request *request, char path[PATH_MAX], const char *name)
{
    int result = acme_request_path(request, path, "%s", name);

    if (result == 0 && mkdir(path, 0755) < 0 && errno != EEXIST)
        result = acme_request_failed(request, path, "created", -errno);
    return result;
}

static int make_link(struct acme_request *request, const char *path)
{
    const char *challenges = request->order->acme->challenges.data;
    char present[PATH_MAX];
    ssize_t length = readlink(path, present, sizeof(present));

    if (length >= 0 && str_equal(str_of(present, (size_t)length), str_from(challenges)))
        return 0;
    if ((unlink(path) < 0 && errno != ENOENT) || symlink(challenges, path) < 0)
        return acme_request_failed(request, path, "created", -errno);
    return 0;
}

/* The folder for --http.webroot. */
static int make_webroot(struct acme_request *request, char webroot[PATH_MAX])
{
    char path[PATH_MAX];
    int result = make_folder(request, webroot, "webroot");

    if (result == 0)
        result = make_folder(request, path, "webroot/.well-known");
    if (result == 0)
        result = acme_request_path(request, path, "webroot/.well-known/acme-challenge");
    return result == 0 ? make_link(request, path) : result;
}

static const char *copy_text(char *into, size_t size, struct str text)
{
    snprintf(into, size, STR_FMT, STR_ARG(text));
    return into;
}

static void add_option(struct acme_run *run, const char *name, const char *value)
{
    acme_run_add(run, name);
    acme_run_add(run, value);
}

static void add_account(struct acme_request *request, struct texts *texts)
{
    static const char *const types[] = {
        [ACME_EC256] = "ec256", [ACME_EC384] = "ec384", [ACME_RSA2048] = "rsa2048", [ACME_RSA4096] = "rsa4096"};
    const struct acme_settings *settings = request->order->certificate->settings;
    struct acme_run *run = &request->run;
    struct str key = settings->eab_key;

    add_option(run, "--path", request->folder);
    add_option(run, "--server", request->order->directory);
    acme_run_add(run, "--accept-tos");
    add_option(run, "--email", request->email);
    add_option(run, "--key-type", types[settings->key_type]);
    if (str_empty(settings->eab_key_id))
        return;
    while (str_ends(key, STR("=")))
        key.length--;
    acme_run_add(run, "--eab");
    add_option(run, "--kid", copy_text(texts->key_id, sizeof(texts->key_id), settings->eab_key_id));
    add_option(run, "--hmac", copy_text(texts->key, sizeof(texts->key), key));
}

static int add_challenge(struct acme_request *request, struct texts *texts)
{
    const struct acme_settings *settings = request->order->certificate->settings;
    struct acme_run *run = &request->run;
    int result;

    if (settings->challenge == ACME_DNS_01) {
        add_option(run, "--dns", copy_text(texts->provider, sizeof(texts->provider), settings->dns));
        if (!settings->dns_propagation)
            acme_run_add(run, "--dns.disable-cp");
        for (size_t i = 0; i < settings->dns_resolvers.count && i < LIMIT_ACME_RESOLVERS; i++)
            add_option(run, "--dns.resolvers",
                       copy_text(texts->resolvers[i], sizeof(texts->resolvers[i]), settings->dns_resolvers.items[i]));
        return 0;
    }
    result = make_webroot(request, texts->webroot);
    run->umask = 022; /* workers of another user read the challenges; see restrict_entry */
    acme_run_add(run, "--http");
    add_option(run, "--http.webroot", texts->webroot);
    return result;
}

static int remove_entry(const char *path, const struct stat *state, int kind, struct FTW *place)
{
    return remove(path);
}

/* lego 4.9 creates the account's key with the mode of the umask; the mode of clients/ protects it meanwhile. */
static int restrict_entry(const char *path, const struct stat *state, int kind, struct FTW *place)
{
    return S_ISREG(state->st_mode) ? chmod(path, 0600) : 0;
}

/* If the authority has deleted the account, the next attempt registers another. */
static void restrict_account(struct acme_request *request)
{
    bool deleted = strstr(request->run.output, ":accountDoesNotExist");
    char accounts[PATH_MAX];

    if (acme_request_path(request, accounts, "accounts") == 0)
        (void)nftw(accounts, deleted ? remove_entry : restrict_entry, WALK_DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

static int run_client(struct acme_request *request, struct texts *texts, const char *const command[])
{
    int status;

    acme_request_start(request);
    add_account(request, texts);
    status = add_challenge(request, texts);
    if (status < 0)
        return status;
    for (size_t i = 0; i < request->order->certificate->name_count; i++)
        add_option(&request->run, "--domains", request->names[i]);
    while (*command)
        acme_run_add(&request->run, *command++);
    status = acme_client_run(&request->run);
    restrict_account(request);
    return status == 0 ? 0 : acme_request_ended(request, status);
}

/* Sets the paths of chain and key. */
static int find_files(struct acme_request *request)
{
    char name[LIMIT_ACME_NAME + 1];
    int result;

    snprintf(name, sizeof(name), "%s%s", request->names[0][0] == '*' ? "_" : "",
             request->names[0] + (request->names[0][0] == '*'));
    result = acme_request_path(request, request->key, "certificates/%s.key", name);
    if (result == 0)
        result = acme_request_path(request, request->chain, "certificates/%s.crt", name);
    return result;
}

static int run_command(struct acme_request *request, const char *const command[])
{
    struct texts texts;
    int result = run_client(request, &texts, command);

    OPENSSL_cleanse(&texts, sizeof(texts));
    return result;
}

static int issue_by_lego(struct acme_request *request)
{
    static const char *const command[] = {"run", NULL}; /* also if there is a certificate: with a new key */
    int result = find_files(request);

    return result == 0 ? run_command(request, command) : result;
}

/* Versions before 4.20 do not query the window, or only on request. */
static bool supports_window(struct acme_request *request)
{
    static const char *const command[] = {"renew", "--help", NULL};

    acme_request_start(request);
    request->run.log = NULL;
    for (size_t i = 0; command[i]; i++)
        acme_run_add(&request->run, command[i]);
    return acme_client_run(&request->run) == 0 && strstr(request->run.output, "--ari-disable");
}

/*
 * The exit status is 0 whether or not the authority has a window. The window delays the renewal only if the output
 * states that it is ahead; if a version words that otherwise, sluice renews at two thirds of the lifetime.
 */
static enum acme_window answer_of(const struct acme_request *request)
{
    if (strstr(request->run.output, "renewalInfo endpoint indicates that renewal is not needed"))
        return ACME_WINDOW_AHEAD;
    return strstr(request->run.output, "renewalInfo endpoint indicates that renewal is needed") ? ACME_WINDOW_REACHED
                                                                                                : ACME_WINDOW_UNKNOWN;
}

/*
 * With `--days 0`, lego's own rule does not apply (LIMIT_ACME_LAST_DAY_S). Without an old key, which was removed after
 * its installation, a key is that of a renewed certificate.
 */
static int renew_by_lego(struct acme_request *request)
{
    static const char *const command[] = {"renew", "--days", "0", "--no-random-sleep", NULL};
    int result = find_files(request);

    if (result < 0 || !acme_file_is_installed(request->order->certificate, request->chain))
        return result;
    if (unlink(request->key) < 0 && errno != ENOENT)
        return acme_request_failed(request, request->key, "removed", -errno);
    result = run_command(request, command);
    request->window = answer_of(request);
    return result < 0 ? result : access(request->key, F_OK) == 0;
}

const struct acme_program acme_program_lego = {
    .name = "lego", .issue = issue_by_lego, .supports_window = supports_window, .renew = renew_by_lego};
