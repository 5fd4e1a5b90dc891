/*
 * Formats the faults of TLS settings, for all loaders. Calls no other file of tls/.
 */
#include "tls/tls_fault.h"

#include <limits.h>
#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Room for two paths and the text around them. */
enum { FAULT_TEXT = 2 * PATH_MAX + 512 };

struct tls_reporter tls_reporter_at(const struct tls_reporter *reporter, const char *directive, size_t index)
{
    struct tls_reporter at = *reporter;

    at.fault.directive = directive;
    at.fault.index = index;
    return at;
}

bool tls_fail(const struct tls_reporter *reporter, const char *format, ...)
{
    struct tls_fault fault = reporter->fault;
    char text[FAULT_TEXT];
    char *hint;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    hint = strchr(text, '\n');
    if (hint)
        *hint++ = '\0';
    fault.text = text;
    fault.hint = hint ? hint : "";
    reporter->report(reporter->owner, &fault);
    return false;
}

const char *tls_openssl_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return reason ? reason : "out of memory";
}
