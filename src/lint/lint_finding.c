/*
 * The list of findings.
 */
#include "lint/lint.h"

#include <stdarg.h>
#include <string.h>

const char *lint_rule_name(const struct lint_finding *finding)
{
    return finding->rule ? finding->rule->name : "load";
}

static bool is_known(const struct lint *lint, const struct lint_finding *finding)
{
    for (size_t i = 0; i < lint->count; i++) {
        const struct lint_finding *known = &lint->items[i];

        if (known->rule == finding->rule && known->mark.file == finding->mark.file &&
            known->mark.line == finding->mark.line && known->mark.column == finding->mark.column)
            return true;
    }
    return false;
}

void lint_add(struct lint *lint, const struct lint_finding *finding)
{
    if (lint->count == lint->room) {
        size_t room = lint->room ? 2 * lint->room : 16;
        struct lint_finding *grown = arena_zalloc(lint->arena, room, sizeof(*grown));

        if (!grown) {
            lint->failed = true;
            return;
        }
        if (lint->count)
            memcpy(grown, lint->items, lint->count * sizeof(*grown));
        lint->items = grown;
        lint->room = room;
    }
    lint->items[lint->count++] = *finding;
}

void lint_report(struct lint *lint, struct conf_mark mark, struct str hint, const char *format, ...)
{
    struct lint_finding finding = {.rule = lint->rule, .level = "warning", .mark = mark};
    va_list args;

    if (is_known(lint, &finding))
        return;
    va_start(args, format);
    finding.message = arena_vprintf(lint->arena, format, args);
    va_end(args);
    finding.hint = arena_copy(lint->arena, hint);
    if (finding.message.data && finding.hint.data)
        lint_add(lint, &finding);
    else
        lint->failed = true;
}
