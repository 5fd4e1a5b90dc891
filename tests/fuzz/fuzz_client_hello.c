/*
 * The first bytes of a client: a server name in the result is valid in a configuration, and a prefix of the input gives
 * the result of the whole input or is incomplete.
 */
#include "fuzz.h"

#include "tls/client_hello.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct client_hello whole, part;
    struct str all = str_of((const char *)bytes, size);
    int result = client_hello_read(all, &whole);
    int half = client_hello_read(str_slice(all, 0, size / 2), &part);

    HOLDS(result == 0 || result == -EAGAIN || result == -EPROTO);
    HOLDS(half == result || half == -EAGAIN);
    if (result < 0)
        return 0;
    HOLDS(whole.name_length <= sizeof(whole.name));
    for (size_t i = 0; i < whole.name_length; i++)
        HOLDS(whole.name[i] > ' ' && whole.name[i] != '/' && (whole.name[i] < 'A' || whole.name[i] > 'Z'));
    if (half == 0)
        HOLDS(str_equal(str_of(whole.name, whole.name_length), str_of(part.name, part.name_length)));
    return 0;
}
