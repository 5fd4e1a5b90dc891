/*
 * The functions of module.h that write to the error log.
 */
#include "server/connection.h"
#include "server/exhaustion.h"
#include "server/variables.h"

#include <stdarg.h>
#include <stdio.h>

struct log *exchange_log(const struct exchange *x)
{
    return connection_log(request_state_of(x)->connection);
}

bool exchange_may_log_error(struct exchange *x, int error)
{
    return worker_may_log_error(request_state_of(x)->worker, error);
}

PRINTF_LIKE(3, 0)
static void write_log_line(struct exchange *x, enum log_level level, const char *format, va_list args)
{
    struct log *log = exchange_log(x);
    const struct request_state *request = request_state_of(x);
    struct log_fields fields;
    char text[512];

    if (level > log->level)
        return;
    if (vsnprintf(text, sizeof(text), format, args) < 0)
        text[0] = '\0';
    fields = (struct log_fields){
        .connection = request->connection->number,
        .client = str_or_empty(variable_remote_addr(x, &x->arena)),
        .server = str_or_empty(request->server->name),
        .request = str_or_empty(x->request.line),
        .host = str_or_empty(x->request.host),
        .request_id = str_or_empty(variable_request_id(x)),
    };
    log_write_fields(log, level, &fields, "%s", text);
}

void exchange_log_error(struct exchange *x, enum log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_log_line(x, level, format, args);
    va_end(args);
}

enum outcome exchange_error_response_log(struct exchange *x, int status, enum log_level level, const char *format,
                                         ...)
{
    va_list args;

    va_start(args, format);
    write_log_line(x, level, format, args);
    va_end(args);
    return exchange_error_response(x, status);
}
