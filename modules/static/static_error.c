/*
 * The response to an error of opening a file.
 */
#include "static.h"

#include <errno.h>

static const char *link_hint(enum symlinks symlinks, int error)
{
    switch (symlinks) {
    case SYMLINKS_BENEATH:
        return error == -EXDEV
                   ? "; an absolute link, or one that leads out of the root, is followed only with "
                     "\"disable_symlinks: off\""
                   : "";
    case SYMLINKS_ANYWHERE:
        return "";
    case SYMLINKS_OWNER:
    case SYMLINKS_NONE:
        break;
    }
    return "; disable_symlinks rejects the link";
}

enum outcome static_respond_error(struct exchange *x, struct str root, struct str path, int error)
{
    enum log_level level = LOG_ERROR;
    const char *hint = "";
    int status;

    switch (error) {
    case -ENOENT:
    case -ENOTDIR:
    case -ENAMETOOLONG:
        status = 404;
        level = LOG_INFO;
        break;
    case -EACCES:
    case -EPERM:
        status = 403;
        break;
    case -ELOOP:
    case -EXDEV:
        status = 403;
        hint = link_hint(exchange_symlinks(x), error);
        break;
    case -EMFILE:
    case -ENFILE:
        status = exchange_out_of_descriptors(x);
        level = LOG_INFO; /* logged once for all requests */
        break;
    default:
        status = 500;
        level = LOG_CRIT;
    }
    return exchange_error_response_log(x, status, level, "open() \"" STR_FMT "/" STR_FMT "\" failed (%d: %s)%s",
                                       STR_ARG(root), STR_ARG(path), -error, strerror(-error), hint);
}
