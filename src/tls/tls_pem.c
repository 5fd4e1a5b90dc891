/*
 * Shared by all readers of PEM files: the fault texts, and the callback in place of a prompt for pass phrases.
 */
#include "tls/tls_server.h"

int tls_no_password(char *into, int size, int writing, void *unused)
{
    return -1;
}

bool tls_pem_contains(const struct tls_file *file, const char *words)
{
    return str_search(str_of(file->text, file->length), str_from(words)) >= 0;
}

bool tls_pem_report_missing(const struct tls_file *file, const char *what, const char *tool, const char *hint,
                            const struct tls_reporter *reporter)
{
    if (file->length == 0)
        return tls_fail(reporter, "\"%s\" is empty\n%s", file->name, hint);
    if (!tls_pem_contains(file, "-----BEGIN "))
        return tls_fail(
            reporter, "\"%s\" is not PEM text\nif it is DER, convert it with: openssl %s -inform der -in %s",
            file->name, tool, file->name);
    return tls_fail(reporter, "\"%s\" contains no %s\n%s", file->name, what, hint);
}
