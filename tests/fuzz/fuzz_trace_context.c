/*
 * traceparent and tracestate: each line of the input is a field line. A context that was read is written, and read
 * again, as the same; a list that was accepted is accepted again, unchanged, and has no byte that could end its field.
 */
#include "fuzz.h"

#include "http/trace_context.h"

static void check_parent(struct arena *arena, const struct headers *fields)
{
    struct headers written = {0};
    struct trace_context context, again;
    char text[TRACEPARENT_LENGTH];

    if (!traceparent_read(fields, &context))
        return;
    HOLDS(context.trace_id.length == TRACE_ID_DIGITS && context.span_id.length == SPAN_ID_DIGITS);
    traceparent_write(&context, text);
    HOLDS(headers_add(&written, arena, STR("traceparent"), str_of(text, sizeof(text))) == 0);
    HOLDS(traceparent_read(&written, &again));
    HOLDS(str_equal(again.trace_id, context.trace_id) && str_equal(again.span_id, context.span_id));
    HOLDS(again.sampled == context.sampled);
}

static void check_state(struct arena *arena, const struct headers *fields)
{
    struct headers joined = {0};
    struct str state, again;

    HOLDS(tracestate_read(fields, arena, &state) == 0);
    if (str_empty(state))
        return;
    for (size_t i = 0; i < state.length; i++)
        HOLDS((state.data[i] >= ' ' && state.data[i] <= '~') || state.data[i] == '\t');
    HOLDS(headers_add(&joined, arena, STR("tracestate"), state) == 0);
    HOLDS(tracestate_read(&joined, arena, &again) == 0);
    HOLDS(str_equal(again, state));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str rest = str_of((const char *)bytes, size);
    struct headers fields = {0};
    struct arena arena;

    if (size > 20000)
        return 0;
    arena_init(&arena, NULL, 0);
    while (rest.data) {
        struct str line = str_cut(&rest, '\n');
        struct str name = str_starts(line, STR("p")) ? STR("traceparent") : STR("tracestate");

        HOLDS(headers_add(&fields, &arena, name, str_trim(str_skip(line, 1))) == 0);
    }
    check_parent(&arena, &fields);
    check_state(&arena, &fields);
    arena_reset(&arena);
    return 0;
}
