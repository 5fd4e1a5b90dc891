/*
 * libcrypt computes the hashes: bcrypt, SHA-crypt, yescrypt and scrypt. $apr1$, the default of htpasswd, is weak but
 * common, and accepted. Other old schemes are rejected: plain MD5-crypt, SHA-1 and DES.
 */
#include "password_file.h"

#include "apr1.h"
#include "base/limits.h"

#include <crypt.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Hashed if the file has no usable hash, so that the check takes the usual time. */
#define DUMMY_HASH "$6$rounds=100000$sluice.nobody$"

struct line {
    unsigned number;
    struct str user, hash;
};

static int64_t timespec_ns(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static struct password_file_state state_of(const struct stat *status)
{
    return (struct password_file_state){(uint64_t)status->st_dev, (uint64_t)status->st_ino,
                                        (uint64_t)status->st_size, timespec_ns(&status->st_mtim),
                                        timespec_ns(&status->st_ctim)};
}

static bool same_state(const struct password_file_state *a, const struct password_file_state *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size && a->modified_ns == b->modified_ns &&
           a->changed_ns == b->changed_ns;
}

/*
 * Reads the file into memory, owned by the caller. A file that has grown since `size` was determined is read up to
 * `size`.
 */
static int read_password_file(int fd, size_t size, char **out_text, size_t *out_length)
{
    char *text = malloc(size + 1);
    size_t length = 0;

    if (!text)
        return -ENOMEM;
    while (length < size) {
        ssize_t count = read(fd, text + length, size - length);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            int error = -errno;

            OPENSSL_clear_free(text, size + 1);
            return error;
        }
        if (count == 0)
            break;
        length += (size_t)count;
    }
    *out_text = text;
    *out_length = length;
    return 0;
}

/* Opens a regular file of at most LIMIT_PASSWORD_FILE bytes for reading. Returns its descriptor or -errno. */
static int open_regular(const char *path, struct stat *out_status)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int error = 0;

    if (fd < 0)
        return -errno;
    if (fstat(fd, out_status) < 0)
        error = -errno;
    else if (!S_ISREG(out_status->st_mode))
        error = -EINVAL;
    else if (out_status->st_size > LIMIT_PASSWORD_FILE)
        error = -EFBIG;
    if (error == 0)
        return fd;
    close(fd);
    return error;
}

/* Returns the next line with a user. Text after a second colon is a comment, as in nginx. */
static bool next_line(struct str *rest, unsigned *number, struct line *out)
{
    while (rest->data) {
        struct str line = str_cut(rest, '\n');

        ++*number;
        if (str_ends(line, STR("\r")))
            line.length--;
        if (str_starts(line, STR("#")) || str_find(line, ':') < 0)
            continue;
        out->number = *number;
        out->user = str_cut(&line, ':');
        out->hash = str_trim(str_cut(&line, ':'));
        return true;
    }
    return false;
}

static bool is_accepted(struct str hash)
{
    static const char *const kinds[] = {"$2y$", "$2b$", "$2a$", "$5$", "$6$", "$y$", "$gy$", "$7$", "$apr1$"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (str_starts(hash, str_from(kinds[i])))
            return true;
    }
    return false;
}

/*
 * The bcrypt cost is a power of two, the SHA-crypt rounds are linear. The parameters of the other schemes have no
 * such simple measure; they are accepted.
 */
static bool is_costly(struct str hash)
{
    struct str number = STR("");
    uint64_t cost = 0;

    if (str_starts(hash, STR("$2")))
        number = str_slice(hash, 4, 6);
    else if (str_starts(str_skip(hash, 3), STR("rounds=")))
        number = str_skip(hash, 10);
    if (str_to_u64(str_cut(&number, '$'), &cost) < 0)
        return false;
    return str_starts(hash, STR("$2")) ? cost > LIMIT_BCRYPT_COST : cost > LIMIT_SHA_ROUNDS;
}

/* Prints the scheme of a rejected hash: "$1$", "{SHA}", or the description of a hash without a prefix. */
static void name_scheme(struct str hash, char *out, size_t size)
{
    struct str name = STR("DES or plain text");

    if (str_starts(hash, STR("{")) && str_find(hash, '}') > 0)
        name = str_slice(hash, 0, (size_t)str_find(hash, '}') + 1);
    else if (str_starts(hash, STR("$")) && str_find(str_skip(hash, 1), '$') > 0)
        name = str_slice(hash, 0, (size_t)str_find(str_skip(hash, 1), '$') + 2);
    if (name.length >= size)
        name.length = size - 1;
    memcpy(out, name.data, name.length);
    out[name.length] = '\0';
}

static bool libcrypt_matches(const char *password, struct str hash)
{
    struct crypt_data *memory = calloc(1, sizeof(*memory));
    char setting[CRYPT_OUTPUT_SIZE] = "";
    const char *made = NULL;
    bool good;

    if (memory && hash.length < sizeof(setting)) {
        memcpy(setting, hash.data, hash.length);
        setting[hash.length] = '\0';
        /* crypt_rn and not crypt_r: sanitizers define crypt_r, and the linker would then omit libcrypt. */
        made = crypt_rn(password, setting, memory, (int)sizeof(*memory));
    }
    good = made && made[0] != '*' && strlen(made) == hash.length && CRYPTO_memcmp(made, setting, hash.length) == 0;
    if (memory)
        OPENSSL_cleanse(memory, sizeof(*memory));
    free(memory);
    return good;
}

static bool password_matches(const char *password, struct str hash)
{
    return str_starts(hash, STR("$apr1$")) ? apr1_matches(password, hash) : libcrypt_matches(password, hash);
}

/*
 * Finds the user's line; false: none. *out_first is the first usable hash of the file, verified for unknown users so
 * that they take the same time.
 */
static bool find_user(struct str text, struct str user, struct line *out, struct str *out_first)
{
    struct line line;
    unsigned number = 0;
    bool found = false;

    *out_first = STR(DUMMY_HASH);
    while (next_line(&text, &number, &line)) {
        if (out_first->data[0] == '$' && is_accepted(line.hash) && !is_costly(line.hash) &&
            str_equal(*out_first, STR(DUMMY_HASH)))
            *out_first = line.hash;
        if (!found && str_equal(line.user, user)) {
            *out = line;
            found = true;
        }
    }
    return found;
}

static void verify_password(struct password_check *check, struct str text)
{
    struct str first;
    struct line line = {0};
    bool found = find_user(text, check->user, &line, &first);

    bool hashable = found && is_accepted(line.hash) && !is_costly(line.hash);
    bool match = password_matches(check->password, hashable ? line.hash : first);

    check->line = line.number;
    if (!found) {
        check->result = PASSWORD_UNKNOWN_USER;
    } else if (!is_accepted(line.hash)) {
        name_scheme(line.hash, check->scheme, sizeof(check->scheme));
        check->result = PASSWORD_WEAK;
    } else if (!hashable) {
        check->result = PASSWORD_COSTLY;
    } else {
        check->result = match ? PASSWORD_GOOD : PASSWORD_BAD;
    }
}

int password_verify(struct password_check *check)
{
    struct password_file_state now;
    struct stat status;
    size_t length = 0;
    char *text = NULL;
    int error, fd = open_regular(check->path, &status);

    if (fd < 0)
        return fd;
    now = state_of(&status);
    if (check->known && same_state(&now, &check->state)) {
        close(fd);
        check->result = PASSWORD_GOOD;
        return 0;
    }
    check->state = now;
    error = read_password_file(fd, (size_t)status.st_size, &text, &length);
    close(fd);
    if (error < 0)
        return error;
    verify_password(check, str_of(text, length));
    OPENSSL_clear_free(text, (size_t)status.st_size + 1);
    return 0;
}

int password_file_check(const char *path, unsigned *out_line, char *user, size_t user_size, char *scheme,
                        size_t scheme_size)
{
    struct str rest;
    struct stat status;
    struct line line;
    size_t length = 0;
    unsigned number = 0;
    char *text = NULL;
    int error, fd = open_regular(path, &status);

    if (fd < 0)
        return fd;
    error = read_password_file(fd, (size_t)status.st_size, &text, &length);
    close(fd);
    if (error < 0)
        return error;
    rest = str_of(text, length);
    while (error == 0 && next_line(&rest, &number, &line)) {
        if (is_accepted(line.hash))
            continue;
        *out_line = line.number;
        snprintf(user, user_size, STR_FMT, STR_ARG(line.user));
        name_scheme(line.hash, scheme, scheme_size);
        error = 1;
    }
    OPENSSL_clear_free(text, (size_t)status.st_size + 1);
    return error;
}
