/*
 * Modules in `stream`: calls their functions, and implements stream_module.h for them.
 */
#include "server/variables.h"
#include "site/subjects.h"
#include "stream/stream_private.h"

#include <stdarg.h>
#include <stdio.h>

/* One module's memory, in the arena of the connection. */
struct stream_module_memory {
    struct stream_module_memory *next;
    const struct module *module;
    void *memory;
};

static struct user_variable_values *values_of(const void *subject)
{
    struct stream *stream = (struct stream *)subject;

    return &stream->user_variable_values;
}

static void log_stream_line(const void *subject, const char *line)
{
    stream_report((struct stream *)subject, LOG_ERROR, "%s", line);
}

const struct user_variable_subject user_variables_of_streams = {values_of, log_stream_line};

const struct sockaddr *stream_client(const struct stream *stream)
{
    return stream->client_address.any.sa_family != AF_UNSPEC ? &stream->client_address.any : &stream->address.any;
}

const struct sockaddr *stream_peer(const struct stream *stream)
{
    return &stream->address.any;
}

const struct proxy_header *stream_proxy_header(const struct stream *stream)
{
    return stream->header;
}

void stream_set_client(struct stream *stream, const union proxy_address *client)
{
    stream->client_address = *client;
}

struct worker *stream_worker(const struct stream *stream)
{
    return stream->worker;
}

void *stream_state_found(const struct stream *stream, const struct module *module)
{
    const struct stream_module_memory *module_memory = stream->module_memory;

    while (module_memory && module_memory->module != module)
        module_memory = module_memory->next;
    return module_memory ? module_memory->memory : NULL;
}

void *stream_state(struct stream *stream, const struct module *module, size_t size)
{
    void *found = stream_state_found(stream, module);
    struct stream_module_memory *module_memory = found ? NULL : arena_zalloc(&stream->arena, 1, sizeof(*module_memory));

    if (found || !module_memory)
        return found;
    *module_memory =
        (struct stream_module_memory){stream->module_memory, module, arena_zalloc(&stream->arena, 1, size)};
    if (module_memory->memory)
        stream->module_memory = module_memory;
    return module_memory->memory;
}

void stream_report(struct stream *stream, enum log_level level, const char *format, ...)
{
    char text[512];
    struct str client = variable_address(stream_client(stream), &stream->arena);
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    log_write_fields(stream_log(stream), level, &(struct log_fields){.connection = stream->number, .client = client},
                     "%s", text);
}

/* Calls the modules in the same order as for requests, until one rejects the connection. */
int stream_check_access(struct stream *stream)
{
    int status = 0;

    for (unsigned index = 0; module_table[index] && status == 0; index++) {
        const struct stream_part *part = module_table[index]->stream;

        if (part && part->connected)
            status = part->connected(stream, stream->server_conf->module_conf[index],
                                     stream->worker->module_states[index]);
        if (status != 0)
            stream_report(stream, LOG_ERROR, "rejected with %d by module %s", status, module_table[index]->name);
    }
    return status;
}

void stream_modules_ended(struct stream *stream)
{
    for (unsigned index = 0; module_table[index]; index++) {
        const struct stream_part *part = module_table[index]->stream;

        if (part && part->ended)
            part->ended(stream, stream->server_conf->module_conf[index]);
    }
}
