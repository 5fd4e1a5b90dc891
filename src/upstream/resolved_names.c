/*
 * A table in shared memory. It is searched linearly: it has few names, and is used only when a name is resolved.
 */
#include "upstream/resolved_names.h"

#include "base/shared_zone.h"

#include <string.h>

struct resolved_name {
    char key[LIMIT_RESOLVED_KEY];   /* empty: unused */
    uint64_t stored;                /* sequence number of the last store */
    size_t count;
    struct resolver_address addresses[LIMIT_UPSTREAM_ADDRESSES];
};

struct resolved_names {
    struct shared_zone shared;
    uint64_t stores;
    struct resolved_name names[LIMIT_RESOLVED_NAMES];
};

struct resolved_names *resolved_names_create(void)
{
    return shared_zone_create(sizeof(struct resolved_names));
}

void resolved_names_destroy(struct resolved_names *names)
{
    if (names)
        shared_zone_destroy(&names->shared);
}

/* Locks the table. Clears it if a process died while it held the lock: an entry may be incomplete. */
static void lock_names(struct resolved_names *names)
{
    if (shared_zone_lock(&names->shared))
        memset(names->names, 0, sizeof(names->names));
}

static struct resolved_name *find_name(struct resolved_names *names, struct str key)
{
    for (size_t i = 0; i < LIMIT_RESOLVED_NAMES; i++) {
        const char *stored = names->names[i].key;

        if (str_equal(str_of(stored, strnlen(stored, LIMIT_RESOLVED_KEY)), key))
            return &names->names[i];
    }
    return NULL;
}

/*
 * Copies the addresses of an entry. A compromised process can write to it at any time: the count is read once, and the
 * copy is validated. Returns the number of addresses; 0: the entry is not valid.
 */
static size_t copy_addresses(const struct resolved_name *name, struct resolver_address out[LIMIT_UPSTREAM_ADDRESSES])
{
    size_t count = __atomic_load_n(&name->count, __ATOMIC_RELAXED);

    if (count > LIMIT_UPSTREAM_ADDRESSES)
        return 0;
    memcpy(out, name->addresses, count * sizeof(*out));
    for (size_t i = 0; i < count; i++) {
        if (out[i].length > sizeof(out[i].socket))
            return 0;
    }
    return count;
}

static struct resolved_name *find_oldest(struct resolved_names *names)
{
    struct resolved_name *oldest = &names->names[0];

    for (size_t i = 1; i < LIMIT_RESOLVED_NAMES; i++) {
        if (names->names[i].stored < oldest->stored)
            oldest = &names->names[i];
    }
    return oldest;
}

void resolved_names_store(struct resolved_names *names, struct str key, const struct resolver_answer *answer)
{
    size_t count = answer->count < LIMIT_UPSTREAM_ADDRESSES ? answer->count : LIMIT_UPSTREAM_ADDRESSES;
    struct resolved_name *name;

    if (count == 0 || str_empty(key) || key.length >= LIMIT_RESOLVED_KEY)
        return;
    lock_names(names);
    name = find_name(names, key);
    if (!name)
        name = find_oldest(names);
    memset(name->key, 0, sizeof(name->key));
    memcpy(name->key, key.data, key.length);
    memcpy(name->addresses, answer->addresses, count * sizeof(*name->addresses));
    name->count = count;
    name->stored = ++names->stores;
    shared_zone_unlock(&names->shared);
}

size_t resolved_names_load(struct resolved_names *names, struct str key,
                           struct resolver_address out[LIMIT_UPSTREAM_ADDRESSES])
{
    const struct resolved_name *name;
    size_t count = 0;

    if (str_empty(key))
        return 0;
    lock_names(names);
    name = find_name(names, key);
    if (name)
        count = copy_addresses(name, out);
    shared_zone_unlock(&names->shared);
    return count;
}
