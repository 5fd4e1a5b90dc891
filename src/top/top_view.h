/*
 * The live view in a terminal, by ncurses. In a build with -Dtop=disabled, top_view_disabled.c reports that there is
 * none.
 */
#ifndef TOP_TOP_VIEW_H
#define TOP_TOP_VIEW_H

#include "top/top_fetch.h"

/* Shows the load until the user types q or closes the terminal. Returns 0 or -errno, which it has reported. */
MUST_CHECK int top_view_run(const struct top_server *server, unsigned interval_s);

#endif
