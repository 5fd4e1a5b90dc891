/*
 * Targets, hosts and internal paths: an accepted path does not lead above the root, contains no control byte, and does
 * not change when it is normalized again, or encoded and parsed.
 */
#include "fuzz.h"

#include "http/url.h"

static void check_path(struct arena *arena, struct str path, bool merge)
{
    struct str again;
    struct url_target parsed;

    HOLDS(path.length > 0 && path.data[0] == '/');
    HOLDS(str_search(path, STR("/../")) < 0 && !str_ends(path, STR("/..")));
    HOLDS(str_search(path, STR("/./")) < 0 && !str_ends(path, STR("/.")));
    HOLDS(!merge || str_search(path, STR("//")) < 0);
    for (size_t i = 0; i < path.length; i++)
        HOLDS((unsigned char)path.data[i] >= 0x20 && path.data[i] != 0x7f);
    HOLDS(url_path_normalise(arena, path, merge, &again) == 0);
    HOLDS(str_equal(again, path));
    HOLDS(url_target_parse(arena, url_path_encode(arena, path), merge, &parsed) == 0);
    HOLDS(str_equal(parsed.path, path));
}

static void check_target(struct arena *arena, struct str text, bool merge)
{
    struct url_target parsed;

    if (url_target_parse(arena, text, merge, &parsed) != 0 || parsed.asterisk)
        return;
    HOLDS(parsed.path.length <= text.length || parsed.bare || parsed.authority.length);
    HOLDS(str_find(parsed.target, '#') < 0);
    check_path(arena, parsed.path, merge);
}

static void check_host(struct arena *arena, struct str text)
{
    struct str host;
    struct str again;
    uint16_t port;

    if (url_host_parse(arena, text, &host, &port) != 0)
        return;
    HOLDS(host.length > 0 && host.length <= text.length);
    HOLDS(str_find(host, '/') < 0 && str_search(host, STR("..")) < 0);
    for (size_t i = 0; i < host.length; i++)
        HOLDS(host.data[i] > 0x20 && host.data[i] < 0x7f && (host.data[i] < 'A' || host.data[i] > 'Z'));
    HOLDS(url_host_parse(arena, host, &again, &port) == 0 && port == 0);
    HOLDS(str_equal(again, host));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct str text = str_of((const char *)bytes, size);
    struct arena arena;
    struct str path;

    if (size > 4096)
        return 0;
    arena_init(&arena, NULL, 0);
    check_target(&arena, text, true);
    check_target(&arena, text, false);
    check_host(&arena, text);
    if (url_path_normalise(&arena, text, true, &path) == 0)
        check_path(&arena, path, true);
    arena_reset(&arena);
    return 0;
}
