/*
 * Reads the files of TLS settings: certificates, keys, lists. All files of a server can be read at once, for
 * processes without access to them. File contents are wiped when freed.
 */
#include "tls/tls_server.h"

#include "base/limits.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RELATIVE_HINT "\nrelative paths start at the directory of the file that contains them, or at -p"

/* Files that occur at most once per server. */
enum { SINGLE = 5 };

void tls_file_finish(struct tls_file *file)
{
    OPENSSL_clear_free(file->text, LIMIT_PEM_FILE + 1);
    file->text = NULL;
}

/*
 * File number `index` of the settings: each certificate and its key, ticket keys, files for client verification,
 * pass phrases.
 */
static bool file_at(const struct tls_settings *settings, size_t index, struct str *out_name,
                    const char **out_directive)
{
    struct str parameters = str_equal(settings->dh_parameters, STR("auto")) ? STR("") : settings->dh_parameters;
    const struct str single[SINGLE] = {settings->client.client_ca, settings->client.trusted, settings->client.crl,
                                       settings->passwords, parameters};
    static const char *const names[SINGLE] = {"ssl_client_certificate", "ssl_trusted_certificate", "ssl_crl",
                                              "ssl_password_file", "ssl_dhparam"};
    size_t pairs = 2 * settings->certificate_count, keys = settings->ticket_key_count;

    if (index < pairs) {
        const struct tls_certificate *certificate = &settings->certificates[index / 2];
        bool made = str_equal(certificate->certificate, STR("self-signed"));

        *out_directive = index % 2 ? "ssl_certificate_key" : "ssl_certificate";
        *out_name = made ? STR("") : index % 2 ? certificate->key : certificate->certificate;
        return true;
    }
    index -= pairs;
    if (index < keys) {
        *out_directive = "ssl_session_ticket_key";
        *out_name = settings->ticket_keys[index];
        return true;
    }
    index -= keys;
    if (index >= SINGLE)
        return false;
    *out_directive = names[index];
    *out_name = single[index];
    return true;
}

static size_t count_files(const struct tls_settings *settings)
{
    return 2 * settings->certificate_count + settings->ticket_key_count + SINGLE;
}

static uint64_t fnv1a_mix(uint64_t number, uint64_t more)
{
    for (int i = 0; i < 8; i++, more >>= 8)
        number = (number ^ (more & 0xff)) * 0x100000001b3;
    return number;
}

static uint64_t mix_state(uint64_t number, struct str name)
{
    char path[PATH_MAX];
    struct stat state;

    if (name.length >= sizeof(path))
        return number;
    memcpy(path, name.data, name.length);
    path[name.length] = '\0';
    if (stat(path, &state) < 0)
        return fnv1a_mix(number, 1);
    const uint64_t facts[] = {
        (uint64_t)state.st_dev,          (uint64_t)state.st_ino,          (uint64_t)state.st_size,
        (uint64_t)state.st_mtim.tv_sec,  (uint64_t)state.st_mtim.tv_nsec, (uint64_t)state.st_ctim.tv_sec,
        (uint64_t)state.st_ctim.tv_nsec,
    };
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
        number = fnv1a_mix(number, facts[i]);
    return number;
}

uint64_t tls_files_stamp(const struct tls_settings *settings)
{
    uint64_t number = 0;
    const char *directive;
    struct str name;

    for (size_t i = 0; file_at(settings, i, &name, &directive); i++) {
        if (!str_empty(name))
            number = mix_state(number ? number : 0xcbf29ce484222325, name);
    }
    return number;
}

/* Concatenates the files in the order of file_at, each after its length. */
static bool concatenate_files(const struct tls_file *each, size_t count, struct tls_files *out_files)
{
    struct tls_files files = {NULL, 0};

    for (size_t i = 0; i < count; i++)
        files.length += sizeof(uint32_t) + each[i].length;
    files.bytes = OPENSSL_malloc(files.length);
    char *next = files.bytes;
    for (size_t i = 0; i < count && next; i++) {
        uint32_t length = (uint32_t)each[i].length;

        memcpy(next, &length, sizeof(length));
        if (length)
            memcpy(next + sizeof(length), each[i].text, length);
        next += sizeof(length) + length;
    }
    if (files.bytes)
        *out_files = files;
    return files.bytes != NULL;
}

static bool is_absent(struct str name)
{
    char path[PATH_MAX];

    if (name.length >= sizeof(path))
        return false;
    memcpy(path, name.data, name.length);
    path[name.length] = '\0';
    return access(path, F_OK) < 0 && errno == ENOENT;
}

/* File number `index` is a certificate that may be absent, and does not exist. */
static bool is_not_issued(const struct tls_settings *settings, size_t index, struct str name)
{
    return index < 2 * settings->certificate_count && index % 2 == 0 &&
           settings->certificates[index / 2].may_be_absent && is_absent(name);
}

bool tls_files_read(const struct tls_settings *settings, struct tls_files *out_files, tls_fault_report *report,
                    void *owner)
{
    const struct tls_reporter reporter = {report, owner, {.directive = ""}};
    const struct tls_server unloaded_server = {.settings = settings};
    size_t count = count_files(settings);
    struct tls_file *each = calloc(count, sizeof(*each));
    const char *directive;
    struct str name;
    bool good = true;

    if (!each)
        return tls_fail(&reporter, "out of memory");
    for (size_t i = 0; file_at(settings, i, &name, &directive); i++) {
        struct tls_reporter at = tls_reporter_at(&reporter, directive, 0);

        good &= str_empty(name) || is_not_issued(settings, i, name) ||
                tls_file_open(&each[i], &unloaded_server, name, &at);
    }
    if (good && !concatenate_files(each, count, out_files))
        good = tls_fail(&reporter, "out of memory");
    for (size_t i = 0; i < count; i++)
        tls_file_finish(&each[i]);
    free(each);
    return good;
}

void tls_files_finish(struct tls_files *files)
{
    OPENSSL_clear_free(files->bytes, files->length);
    *files = (struct tls_files){NULL, 0};
}

/* The contents of the file with this name. */
static bool find_file(const struct tls_server *server, struct str path, struct str *out_text)
{
    struct str rest = str_of(server->files->bytes, server->files->length);
    const char *directive;
    struct str name;

    for (size_t i = 0; file_at(server->settings, i, &name, &directive); i++) {
        uint32_t length;

        if (rest.length < sizeof(length))
            return false;
        memcpy(&length, rest.data, sizeof(length));
        rest = str_skip(rest, sizeof(length));
        if (rest.length < length)
            return false;
        if (str_equal(name, path)) {
            *out_text = str_of(rest.data, length);
            return true;
        }
        rest = str_skip(rest, length);
    }
    return false;
}

bool tls_certificate_absent(const struct tls_server *server, const struct tls_certificate *certificate)
{
    struct str text;

    if (!certificate->may_be_absent)
        return false;
    if (!server->files)
        return is_absent(certificate->certificate);
    return find_file(server, certificate->certificate, &text) && str_empty(text);
}

static bool copy_from_files(struct tls_file *file, const struct tls_server *server,
                            const struct tls_reporter *reporter)
{
    struct str text;

    if (!find_file(server, str_from(file->name), &text) || text.length > LIMIT_PEM_FILE)
        return tls_fail(reporter, "\"%s\" was not read", file->name);
    file->text = OPENSSL_malloc(LIMIT_PEM_FILE + 1);
    if (!file->text)
        return tls_fail(reporter, "out of memory");
    memcpy(file->text, text.data, text.length);
    file->length = text.length;
    return true;
}

bool tls_file_open(struct tls_file *file, const struct tls_server *server, struct str name,
                   const struct tls_reporter *reporter)
{
    file->text = NULL;
    file->length = 0;
    if (name.length >= sizeof(file->name))
        return tls_fail(reporter, "the file name \"%.64s...\" is too long", name.data);
    memcpy(file->name, name.data, name.length);
    file->name[name.length] = '\0';
    if (server->files)
        return copy_from_files(file, server, reporter);
    FILE *stream = fopen(file->name, "rbe");
    if (!stream)
        return tls_fail(reporter, "\"%s\" cannot be opened: %s%s", file->name, strerror(errno),
                        errno == ENOENT ? RELATIVE_HINT : "");
    setbuf(stream, NULL); /* no second copy of a key */
    file->text = OPENSSL_malloc(LIMIT_PEM_FILE + 1);
    if (file->text)
        file->length = fread(file->text, 1, LIMIT_PEM_FILE + 1, stream);
    bool failed = !file->text || ferror(stream);
    int error = file->text ? errno : ENOMEM;
    fclose(stream);
    if (failed)
        return tls_fail(reporter, "\"%s\" cannot be read: %s", file->name, strerror(error));
    if (file->length > LIMIT_PEM_FILE)
        return tls_fail(reporter, "\"%s\" is too large for a PEM file (more than %d bytes)", file->name,
                        LIMIT_PEM_FILE);
    return true;
}
