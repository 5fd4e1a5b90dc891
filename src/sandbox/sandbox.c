/*
 * Applies the parts in the order of enum sandbox_part, and logs the result.
 */
#include "sandbox/sandbox.h"

#include "sandbox/sandbox_part.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *const sandbox_part_names[] = {
    [SANDBOX_CAPABILITIES] = "capabilities",
    [SANDBOX_NO_DUMP] = "no_dump",
    [SANDBOX_LANDLOCK] = "landlock",
    [SANDBOX_SECCOMP] = "seccomp",
    [SANDBOX_PARTS] = NULL,
};

/* `probe` NULL: every kernel has the part. */
static const struct {
    sandbox_probe_part *probe;
    sandbox_apply_part *apply;
} parts[SANDBOX_PARTS] = {
    [SANDBOX_CAPABILITIES] = {NULL, capabilities_apply},
    [SANDBOX_NO_DUMP] = {NULL, no_dump_apply},
    [SANDBOX_LANDLOCK] = {landlock_probe, landlock_apply},
    [SANDBOX_SECCOMP] = {seccomp_probe, seccomp_apply},
};

/* Names and notes of the applied parts, separated by commas. */
struct applied {
    char text[512];
    size_t length;
};

static void applied_add(struct applied *applied, unsigned part, const char *note)
{
    int written = snprintf(applied->text + applied->length, sizeof(applied->text) - applied->length, "%s%s%s%s%s",
                           applied->length > 0 ? ", " : "", sandbox_part_names[part], note[0] ? " (" : "", note,
                           note[0] ? ")" : "");

    if (written > 0 && (size_t)written < sizeof(applied->text) - applied->length)
        applied->length += (size_t)written;
}

int sandbox_probe(enum sandbox_part part, char *note, size_t size)
{
    note[0] = '\0';
    return parts[part].probe ? parts[part].probe(note, size) : 0;
}

int sandbox_begin(unsigned wanted)
{
    return wanted & (1u << SANDBOX_CAPABILITIES) ? bounding_set_drop() : 0;
}

int sandbox_apply(const struct sandbox *sandbox, struct log *log)
{
    struct applied applied = {0};

    for (unsigned part = 0; part < SANDBOX_PARTS; part++) {
        struct sandbox_outcome outcome = {0};
        int result;

        if (!(sandbox->parts & (1u << part)))
            continue;
        if (sandbox_probe(part, outcome.note, sizeof(outcome.note)) < 0) {
            log_write(log, LOG_NOTICE, "sandbox: without %s: %s", sandbox_part_names[part], outcome.note);
            continue;
        }
        result = parts[part].apply(sandbox, &outcome);
        if (result < 0) {
            log_write(log, LOG_EMERG, "sandbox: %s: %s failed (%d: %s)", sandbox_part_names[part], outcome.call,
                      -result, strerror(-result));
            return result;
        }
        applied_add(&applied, part, outcome.note);
    }
    log_write(log, LOG_INFO, "sandbox: %s", applied.length > 0 ? applied.text : "off");
    return 0;
}
