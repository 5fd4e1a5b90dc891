/*
 * `sluice import` in a build without the importer.
 */
#include "command/commands.h"
#include "log/error_log.h"

#include <stdlib.h>

int command_import(const struct options *options)
{
    error_log_print(LOG_EMERG, "import is not part of this build: configure it with the meson option -Dimport=enabled");
    return EXIT_FAILURE;
}
