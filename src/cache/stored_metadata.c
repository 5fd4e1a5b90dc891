/*
 * Reads the metadata of a stored response.
 */
#include "cache/stored_metadata.h"

#include "base/limits.h"

#include <errno.h>
#include <stdbool.h>

/* Sums of these times do not overflow. */
static bool is_time(int64_t seconds)
{
    return seconds >= -LIMIT_STORED_SECONDS && seconds <= LIMIT_STORED_SECONDS;
}

static bool is_valid(const struct stored_metadata *metadata)
{
    return (metadata->status == 0 || (metadata->status >= 200 && metadata->status <= 999)) &&
           is_time(metadata->received_s) && is_time(metadata->initial_age_s) && is_time(metadata->lifetime_s) &&
           is_time(metadata->stale_while_revalidate) && is_time(metadata->stale_if_error) && metadata->no_cache <= 1 &&
           metadata->never_stale <= 1;
}

int stored_metadata_read(struct str head, struct stored_metadata *out)
{
    struct stored_metadata metadata;

    if (head.length < sizeof(metadata))
        return -EBADMSG;
    memcpy(&metadata, head.data, sizeof(metadata));
    if (!is_valid(&metadata))
        return -EBADMSG;
    *out = metadata;
    return 0;
}
