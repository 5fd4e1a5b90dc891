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
    [SANDBOX_PARTS] = NULL,
};

static sandbox_apply_part *const appliers[SANDBOX_PARTS] = {
    [SANDBOX_CAPABILITIES] = sandbox_drop_capabilities,
    [SANDBOX_NO_DUMP] = sandbox_forbid_dump,
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

int sandbox_begin(unsigned parts)
{
    return parts & (1u << SANDBOX_CAPABILITIES) ? sandbox_drop_bounding_set() : 0;
}

int sandbox_apply(unsigned parts, struct log *log)
{
    struct applied applied = {0};

    for (unsigned part = 0; part < SANDBOX_PARTS; part++) {
        struct sandbox_outcome outcome = {0};
        int result;

        if (!(parts & (1u << part)))
            continue;
        result = appliers[part](&outcome);
        if (result == -ENOTSUP) {
            log_write(log, LOG_NOTICE, "sandbox: without %s: %s", sandbox_part_names[part], outcome.note);
        } else if (result < 0) {
            log_write(log, LOG_EMERG, "sandbox: %s: %s failed (%d: %s)", sandbox_part_names[part], outcome.call,
                      -result, strerror(-result));
            return result;
        } else {
            applied_add(&applied, part, outcome.note);
        }
    }
    log_write(log, LOG_INFO, "sandbox: %s", applied.length > 0 ? applied.text : "off");
    return 0;
}
