/*
 * Reads the files that TLS needs: certificates, keys, lists. What has been read is wiped when it is let go of.
 */
#include "tls/tls_server.h"

#include "base/limits.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>

#define RELATIVE_HINT "\nrelative paths start at the folder of the file they stand in, or at -p"

void tls_file_finish(struct tls_file *file)
{
    OPENSSL_clear_free(file->text, LIMIT_PEM_FILE + 1);
    file->text = NULL;
}

bool tls_file_open(struct tls_file *file, struct str name, const struct tls_failure *failure)
{
    file->text = NULL;
    file->length = 0;
    if (name.length >= sizeof(file->name))
        return tls_fail(failure, "the file name \"%.64s...\" is too long", name.data);
    memcpy(file->name, name.data, name.length);
    file->name[name.length] = '\0';
    FILE *stream = fopen(file->name, "rbe");
    if (!stream)
        return tls_fail(failure, "\"%s\" cannot be opened: %s%s", file->name, strerror(errno),
                        errno == ENOENT ? RELATIVE_HINT : "");
    setbuf(stream, NULL); /* no second copy of a key */
    file->text = OPENSSL_malloc(LIMIT_PEM_FILE + 1);
    if (file->text)
        file->length = fread(file->text, 1, LIMIT_PEM_FILE + 1, stream);
    bool failed = !file->text || ferror(stream);
    int error = file->text ? errno : ENOMEM;
    fclose(stream);
    if (failed)
        return tls_fail(failure, "\"%s\" cannot be read: %s", file->name, strerror(error));
    if (file->length > LIMIT_PEM_FILE)
        return tls_fail(failure, "\"%s\" is too large for a PEM file (more than %d bytes)", file->name,
                        LIMIT_PEM_FILE);
    return true;
}
