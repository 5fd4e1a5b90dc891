/*
 * The backends compiled in, the preferred one first, NULL at the end.
 */
#ifndef IO_BACKENDS_H
#define IO_BACKENDS_H

#include "io/loop.h"

extern const struct loop_backend *const loop_backends[];

#endif
