/*
 * The directive `control`.
 */
#include "site/core.h"

#include <errno.h>

#define CONTROL_HINT STR("write: control: unix:/run/sluice/control.sock, or: control: off")

static bool is_off(const struct conf_node *node)
{
    return node->kind == CONF_SCALAR && (str_equal(node->text, STR("off")) || str_equal(node->text, STR("false")) ||
                                         str_equal(node->text, STR("no")));
}

int core_control_read(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct core_control control = {.mark = node->mark};
    struct core_control *into = out;
    struct str text = STR("");
    char shown[128];
    int error = is_off(node) ? 0 : conf_read_text(reader, node, &text);

    if (error < 0)
        return error;
    if (!is_off(node)) {
        if (!str_starts(text, STR("unix:/")) || listen_address_parse(text, &control.address) < 0) {
            conf_error(reader->errors, node->mark, CONTROL_HINT,
                       "\"" STR_FMT "\" is not an absolute path of a Unix socket", STR_ARG(text));
            return -EINVAL;
        }
        control.text = arena_copy(reader->arena, listen_address_format(&control.address, shown, sizeof(shown)));
        if (!control.text.data)
            return -ENOMEM;
    }
    *into = control;
    return 0;
}
