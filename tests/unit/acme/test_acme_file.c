#include "acme/acme_file.h"

#include "../runner.h"
#include "base/limits.h"
#include "made.h"

#include <errno.h>
#include <openssl/crypto.h>

static struct str names[] = {{"a.x.test", 8}, {"b.x.test", 8}, {"192.0.2.1", 9}};
static char file[96];
static struct acme_certificate certificate = {.names = names, .name_count = 2};

static int allocations_left = -1;   /* of OpenSSL until it is out of memory; negative: any number */

static bool may_allocate(void)
{
    if (allocations_left > 0)
        allocations_left--;
    return allocations_left != 0;
}

static void *allocate(size_t size, const char *where, int line)
{
    return may_allocate() ? malloc(size) : NULL;
}

static void *reallocate(void *old, size_t size, const char *where, int line)
{
    return may_allocate() ? realloc(old, size) : NULL;
}

static void release(void *allocated, const char *where, int line)
{
    free(allocated);
}

START_TEST(facts_are_read)
{
    struct acme_validity validity;
    int64_t lifetime;

    folder_make();
    make_certificate(path_of("x.pem"), path_of("x.pem"), "DNS:a.x.test,DNS:b.x.test", 100, 1000);
    certificate.name_count = 2;
    ck_assert_int_eq(acme_file_read(path_of("x.pem"), &certificate, &validity), 0);
    lifetime = validity.not_after_s - validity.not_before_s;
    ck_assert(validity.covers_names && lifetime >= 999 && lifetime <= 1001);
    ck_assert(validity.not_before_s > 1700000000);
    certificate.name_count = 3;
    ck_assert_int_eq(acme_file_read(path_of("x.pem"), &certificate, &validity), 0);
    ck_assert(!validity.covers_names);
    make_certificate(path_of("y.pem"), path_of("y.pem"), "DNS:*.x.test,IP:192.0.2.1", 0, 1000);
    ck_assert_int_eq(acme_file_read(path_of("y.pem"), &certificate, &validity), 0);
    ck_assert(validity.covers_names);
    folder_remove();
}
END_TEST

START_TEST(other_files_have_no_facts)
{
    struct acme_validity validity;

    folder_make();
    ck_assert_int_eq(acme_file_read(path_of("none"), &certificate, &validity), -ENOENT);
    file_write(path_of("text"), "no certificate", 0600);
    ck_assert_int_eq(acme_file_read(path_of("text"), &certificate, &validity), -EINVAL);
    make_certificate(path_of("chain"), path_of("key"), "DNS:a.x.test", 0, 1000);
    ck_assert_int_eq(acme_file_read(path_of("chain"), &certificate, &validity), -EINVAL);
    ck_assert_int_eq(acme_file_read(folder, &certificate, &validity), -EISDIR);
    ck_assert_int_eq(acme_file_read("/proc/self/mem", &certificate, &validity), -EIO);
    ck_assert_int_eq(truncate(path_of("text"), LIMIT_PEM_FILE + 2), 0);
    ck_assert_int_eq(acme_file_read(path_of("text"), &certificate, &validity), -EFBIG);
    folder_remove();
}
END_TEST

START_TEST(valid_file_is_not_invalid_when_out_of_memory)
{
    struct acme_validity validity;

    folder_make();
    make_certificate(path_of("x.pem"), path_of("x.pem"), "DNS:a.x.test,DNS:b.x.test", 100, 1000);
    certificate.name_count = 2;
    ck_assert_int_eq(acme_file_read(path_of("x.pem"), &certificate, &validity), 0);
    for (int i = 1; i < 40; i++) {
        int error;

        allocations_left = i;
        error = acme_file_read(path_of("x.pem"), &certificate, &validity);
        allocations_left = -1;
        ck_assert_msg(error == -ENOMEM, "%d after %d allocations", error, i);
    }
    folder_remove();
}
END_TEST

START_TEST(errors_of_the_system_leave_the_contents_unknown)
{
    static const int unknown[] = {EIO, ESTALE, ETIMEDOUT, EMFILE, ENFILE, ENOMEM, 0};
    static const int known[] = {0, ENOENT, EINVAL, EISDIR, EFBIG, EACCES};

    for (size_t i = 0; unknown[i]; i++)
        ck_assert(acme_file_is_unknown(-unknown[i]));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        ck_assert(!acme_file_is_unknown(-known[i]));
}
END_TEST

START_TEST(only_matching_files_are_installed)
{
    struct acme_validity validity;
    struct stat state;

    folder_make();
    snprintf(file, sizeof(file), "%s/installed", folder);
    certificate.file = str_from(file);
    certificate.name_count = 2;
    make_certificate(path_of("chain"), path_of("key"), "DNS:a.x.test,DNS:b.x.test", 0, 1000);
    make_certificate(path_of("chain2"), path_of("key2"), "DNS:a.x.test", 0, 1000);
    ck_assert_int_eq(acme_file_install(&certificate, path_of("chain"), path_of("key2")), -EINVAL);
    ck_assert_int_eq(acme_file_install(&certificate, path_of("chain2"), path_of("key2")), -EINVAL);
    ck_assert_int_eq(acme_file_install(&certificate, path_of("chain"), path_of("none")), -ENOENT);
    ck_assert_int_eq(access(certificate.file.data, F_OK), -1);
    umask(0);
    ck_assert_int_eq(acme_file_install(&certificate, path_of("chain"), path_of("key")), 0);
    ck_assert_int_eq(stat(certificate.file.data, &state), 0);
    ck_assert_uint_eq(state.st_mode & 0777, 0600);
    ck_assert_int_eq(acme_file_read(certificate.file.data, &certificate, &validity), 0);
    ck_assert(validity.covers_names);
    /* A failure keeps the file. */
    ck_assert_int_eq(acme_file_install(&certificate, path_of("chain2"), path_of("key2")), -EINVAL);
    ck_assert_int_eq(acme_file_read(certificate.file.data, &certificate, &validity), 0);
    folder_remove();
}
END_TEST

START_TEST(the_installed_certificate_is_recognised)
{
    folder_make();
    snprintf(file, sizeof(file), "%s/installed", folder);
    certificate.file = str_from(file);
    certificate.name_count = 2;
    make_certificate(path_of("chain"), path_of("key"), "DNS:a.x.test,DNS:b.x.test", 0, 1000);
    make_certificate(path_of("other"), path_of("key2"), "DNS:a.x.test,DNS:b.x.test", 0, 1000);
    ck_assert(!acme_file_is_installed(&certificate, path_of("chain")));
    ck_assert_int_eq(acme_file_install(&certificate, path_of("chain"), path_of("key")), 0);
    ck_assert(acme_file_is_installed(&certificate, path_of("chain")));
    ck_assert(!acme_file_is_installed(&certificate, path_of("other")));
    ck_assert(!acme_file_is_installed(&certificate, path_of("key")));
    ck_assert(!acme_file_is_installed(&certificate, path_of("none")));
    file_write(path_of("empty"), "", 0600);
    ck_assert(!acme_file_is_installed(&certificate, path_of("empty")));
    /* The configuration no longer has the second name. */
    certificate.name_count = 1;
    ck_assert(!acme_file_is_installed(&certificate, path_of("chain")));
    folder_remove();
}
END_TEST

START_TEST(a_file_is_replaced_or_stays)
{
    folder_make();
    ck_assert_int_eq(acme_file_replace(path_of("file"), STR("one")), 0);
    file_write(path_of("file.new"), "left by an interrupted write", 0644);
    ck_assert_int_eq(acme_file_replace(path_of("file"), STR("two")), 0);
    ck_assert(file_is(path_of("file"), "two"));
    ck_assert_int_eq(access(path_of("file.new"), F_OK), -1);
    ck_assert_int_eq(mkdir(path_of("file.new"), 0700), 0);
    ck_assert_int_eq(acme_file_replace(path_of("file"), STR("three")), -EEXIST);
    ck_assert(file_is(path_of("file"), "two"));
    ck_assert_int_eq(acme_file_replace(path_of("none/file"), STR("x")), -ENOENT);
    ck_assert_int_lt(acme_file_replace("/dev/full/x", STR("x")), 0);
    folder_remove();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        facts_are_read, other_files_have_no_facts, valid_file_is_not_invalid_when_out_of_memory,
        errors_of_the_system_leave_the_contents_unknown, only_matching_files_are_installed,
        the_installed_certificate_is_recognised, a_file_is_replaced_or_stays, NULL,
    };

    if (CRYPTO_set_mem_functions(allocate, reallocate, release) != 1)
        return 1;
    return run_tests("acme_file", tests);
}
