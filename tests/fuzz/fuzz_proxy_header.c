/*
 * The PROXY protocol: the header's length is within the input, the result does not depend on the bytes after the
 * header, and a written header is parsed without a change.
 */
#include "fuzz.h"

#include "wire/proxy_header.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct proxy_header header;
    struct proxy_header again;
    struct str whole = str_of((const char *)bytes, size);
    ssize_t length = proxy_header_parse(whole, &header);
    char into[PROXY_HEADER_WRITTEN];

    HOLDS(length == -EPROTO || (length >= 0 && length <= PROXY_HEADER_MAX && (size_t)length <= size));
    if (length <= 0)
        return 0;
    HOLDS(proxy_header_parse(str_slice(whole, 0, (size_t)length), &again) == length);
    HOLDS(memcmp(&header, &again, sizeof(header)) == 0);
    HOLDS(proxy_header_parse(str_slice(whole, 0, (size_t)length - 1), &again) == 0);
    HOLDS(header.source.any.sa_family == header.destination.any.sa_family);
    for (unsigned version = 1; version <= 2; version++) {
        size_t written = proxy_header_write(&header.source.any, &header.destination.any, version, into);

        HOLDS(written <= sizeof(into));
        HOLDS(proxy_header_parse(str_of(into, written), &again) == (ssize_t)written);
        HOLDS(memcmp(&header, &again, sizeof(header)) == 0);
    }
    return 0;
}
