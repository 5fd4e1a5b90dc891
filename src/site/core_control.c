/*
 * The directive `control`.
 */
#include "site/core.h"

#include <errno.h>

#define CONTROL_HINT STR("write: control: unix:/run/sluice/control.sock, or: control: off")

int core_control_read(struct conf_reader *reader, const struct conf_node *node, void *out)
{
    struct core_control control = {.mark = node->mark};
    struct core_control *into = out;
    struct str text = STR("");
    char shown[128];
    bool is_off = node->kind == CONF_SCALAR && core_is_off(node->text);
    int error = is_off ? 0 : conf_read_text(reader, node, &text);

    if (error < 0)
        return error;
    if (!is_off) {
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
