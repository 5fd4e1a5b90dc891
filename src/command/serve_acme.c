/*
 * The state folder and the name of `sluice serve --acme NAME`.
 */
#include "command/serve_acme.h"

#include "base/log.h"
#include "log/error_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_ROOT "/var/lib/sluice/acme"

/* Creates the missing parents of `path`, with this mode. */
static int create_parents(char *path, mode_t mode)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        int result;

        *slash = '\0';
        result = mkdir(path, mode) < 0 && errno != EEXIST ? -errno : 0;
        if (result < 0) {
            error_log_print(LOG_EMERG, "\"%s\" cannot be created (%d: %s)", path, -result, strerror(-result));
            return result;
        }
        *slash = '/';
    }
    return 0;
}

int serve_acme_state(char into[PATH_MAX])
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length;

    if (geteuid() == 0)
        length = snprintf(into, PATH_MAX, STATE_ROOT);
    else if (state && *state == '/')
        length = snprintf(into, PATH_MAX, "%s/sluice/acme", state);
    else if (home && *home == '/')
        length = snprintf(into, PATH_MAX, "%s/.local/state/sluice/acme", home);
    else
        length = PATH_MAX;
    if (length < PATH_MAX)
        return create_parents(into, geteuid() == 0 ? 0755 : 0700);
    error_log_print(LOG_EMERG, "there is no folder for certificates: XDG_STATE_HOME or HOME must name one");
    return -EINVAL;
}

int serve_acme_check(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";

    if (strchr(name, '.') && strspn(name, allowed) == strlen(name))
        return 0;
    error_log_print(LOG_EMERG, "--acme \"%s\": a public DNS name is required, such as example.org", name);
    return -EINVAL;
}
