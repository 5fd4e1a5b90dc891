/*
 * The server of the tests that let allocations fail. The linker replaces malloc and realloc (--wrap).
 */
#include "memory_server.h"

#include <errno.h>

void *__real_malloc(size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_realloc(void *memory, size_t size);

long memory_server_until_failure = -1;
int memory_server_open, memory_server_interims;

static bool fails(void)
{
    if (memory_server_until_failure < 0)
        return false;
    return memory_server_until_failure-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

static void finished(void *owner, struct exchange *x)
{
    memory_server_open--;
}

static void wake(void *owner)
{
}

static void answer(struct exchange *x, int status)
{
    x->response.status = status;
    if (headers_add(&x->response.headers, &x->arena, STR("X"), STR("y")) != 0)
        x->response.status = 500;
    x->response.body = body_bytes(&x->arena, STR("body"));
    if (x->response.body)
        x->response.body->length = status == 200 ? BODY_LENGTH_UNKNOWN : 4;
    if (headers_add(&x->response.trailers, &x->arena, STR("T"), STR("t")) != 0)
        x->response.status = 500;
    exchange_respond(x);
}

/* Reads the available bytes of the body, and responds when it ends. */
static void read_body(void *owner)
{
    struct exchange *x = owner;
    struct chunk chunk;
    int result;

    x->request.body->wake = read_body;
    x->request.body->owner = x;
    while ((result = x->request.body->ops->next(x->request.body, CHUNK_BYTES, 4, &chunk)) == 1)
        ;
    if (result != -EAGAIN)
        answer(x, result ? exchange_body_status(result) : 200);
}

static void begun(void *owner, struct exchange *x)
{
    static struct header link = {{"Link", 4}, {"</a>", 4}};
    static const struct headers hints = {.items = &link, .count = 1};

    memory_server_open++;
    for (int i = 0; i < memory_server_interims; i++) {
        if (exchange_inform(x, 103, &hints) == 0)
            continue;
        answer(x, 500);
        return;
    }
    read_body(x);
}

static void rejected(void *owner, struct exchange *x, int status)
{
    memory_server_open++;
    answer(x, status);
}

const struct exchange_events memory_server_events = {begun, rejected, finished, wake};
