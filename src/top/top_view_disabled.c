/*
 * `sluice top` in a build without ncurses.
 */
#include "top/top_view.h"

#include "log/error_log.h"

#include <errno.h>

int top_view_run(const struct top_server *server, unsigned interval_s)
{
    error_log_print(LOG_EMERG,
                    "the live view is not part of this build: configure it with the meson option -Dtop=enabled (Debian "
                    "package libncurses-dev); \"sluice top --once\" prints one sample");
    return -ENOTSUP;
}
