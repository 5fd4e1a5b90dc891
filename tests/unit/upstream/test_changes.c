/* The table of servers added and removed at run time. */
#include "base/shared_zone.h"
#include "upstream/upstream_changes.h"

#include "../http/suite.h"
#include "../skip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct upstream_changes *changes;

static struct upstream_change added(const char *name)
{
    struct upstream_change change = {.kind = CHANGE_ADDED, .group = 3, .weight = 2, .max_fails = 1, .backup = true};

    snprintf(change.name, sizeof(change.name), "%s", name);
    return change;
}

static int write_name(uint64_t configuration, const char *name)
{
    const struct upstream_change change = added(name);
    uint64_t serial = 0;
    int error = upstream_changes_write(changes, configuration, &change, &serial);

    ck_assert_int_eq(serial > 0, error == 0);
    return error;
}

/* The number of rows with this name; its last serial. */
static unsigned rows_of(const char *name, uint64_t *out_serial)
{
    struct upstream_change row;
    unsigned count = 0;

    *out_serial = 0;
    for (unsigned i = 0; i < LIMIT_UPSTREAM_CHANGES; i++) {
        if (!upstream_changes_read(changes, i, &row) || strcmp(row.name, name) != 0)
            continue;
        *out_serial = row.serial;
        count++;
    }
    return count;
}

static void open_table(void)
{
    changes = upstream_changes_create();
    ck_assert_ptr_nonnull(changes);
    upstream_changes_lock(changes);
}

static void close_table(void)
{
    upstream_changes_unlock(changes);
    upstream_changes_destroy(changes);
}

START_TEST(rows_are_written_and_erased)
{
    struct upstream_change row;
    uint64_t first, second, count;

    open_table();
    ck_assert(!upstream_changes_read(changes, 0, &row));
    ck_assert_uint_eq(upstream_changes_configuration(changes), 0);
    ck_assert_int_eq(write_name(7, "10.0.0.1:80"), 0);
    ck_assert_int_eq(write_name(7, "10.0.0.2:80"), 0);
    ck_assert_uint_eq(upstream_changes_configuration(changes), 7);
    ck_assert(upstream_changes_read(changes, 0, &row));
    ck_assert_int_eq(row.kind, CHANGE_ADDED);
    ck_assert_str_eq(row.name, "10.0.0.1:80");
    ck_assert_uint_eq(row.group, 3);
    ck_assert_uint_eq(row.weight, 2);
    ck_assert(row.backup);
    ck_assert_uint_eq(rows_of("10.0.0.1:80", &first), 1);
    ck_assert_uint_eq(rows_of("10.0.0.2:80", &second), 1);
    ck_assert_uint_ne(first, second);
    count = upstream_changes_count(changes);
    upstream_changes_erase(changes, first + second);
    ck_assert_uint_eq(upstream_changes_count(changes), count);
    upstream_changes_erase(changes, first);
    ck_assert_uint_gt(upstream_changes_count(changes), count);
    ck_assert_uint_eq(rows_of("10.0.0.1:80", &first), 0);
    ck_assert_uint_eq(rows_of("10.0.0.2:80", &second), 1);
    ck_assert_int_eq(write_name(7, "10.0.0.1:80"), 0);
    ck_assert_uint_eq(rows_of("10.0.0.1:80", &first), 1);
    ck_assert_uint_gt(first, second);
    close_table();
}
END_TEST

START_TEST(a_newer_configuration_begins_without_rows)
{
    uint64_t serial;

    open_table();
    ck_assert_int_eq(write_name(7, "10.0.0.1:80"), 0);
    ck_assert_int_eq(write_name(8, "10.0.0.2:80"), 0);
    ck_assert_uint_eq(rows_of("10.0.0.1:80", &serial), 0);
    ck_assert_uint_eq(rows_of("10.0.0.2:80", &serial), 1);
    ck_assert_int_eq(write_name(7, "10.0.0.3:80"), -ESTALE);
    ck_assert_uint_eq(rows_of("10.0.0.3:80", &serial), 0);
    ck_assert_uint_eq(rows_of("10.0.0.2:80", &serial), 1);
    close_table();
}
END_TEST

START_TEST(a_full_table_keeps_its_rows)
{
    uint64_t serial, count;

    open_table();
    for (unsigned i = 0; i < LIMIT_UPSTREAM_CHANGES; i++)
        ck_assert_int_eq(write_name(1, "10.0.0.1:80"), 0);
    count = upstream_changes_count(changes);
    ck_assert_int_eq(write_name(1, "10.0.0.2:80"), -ENOSPC);
    ck_assert_uint_eq(upstream_changes_count(changes), count);
    ck_assert_uint_eq(rows_of("10.0.0.1:80", &serial), LIMIT_UPSTREAM_CHANGES);
    upstream_changes_erase(changes, serial);
    ck_assert_int_eq(write_name(1, "10.0.0.2:80"), 0);
    ck_assert_int_eq(write_name(2, "10.0.0.3:80"), 0);
    ck_assert_uint_eq(rows_of("10.0.0.1:80", &serial), 0);
    close_table();
}
END_TEST

static void reject(const struct upstream_change *change)
{
    struct upstream_change row;
    uint64_t serial;

    open_table();
    ck_assert_int_eq(upstream_changes_write(changes, 1, change, &serial), 0);
    ck_assert(!upstream_changes_read(changes, 0, &row));
    close_table();
}

/* A row as a compromised worker writes it. */
START_TEST(invalid_rows_are_not_read)
{
    struct upstream_change change = added("10.0.0.1:80");
    struct upstream_change row;
    unsigned char other = 77;
    uint64_t serial;

    memset(change.name, 'n', sizeof(change.name));
    reject(&change);
    change = added("");
    reject(&change);
    change = added("10.0.0.1:80");
    change.kind = (enum upstream_change_kind)3;
    reject(&change);
    change = added("10.0.0.1:80");
    change.weight = 0;
    reject(&change);
    change.weight = LIMIT_UPSTREAM_WEIGHT + 1;
    reject(&change);
    change = added("10.0.0.1:80");
    change.max_conns = (uint64_t)LIMIT_UPSTREAM_CHANGE_VALUE + 1;
    reject(&change);
    change = added("10.0.0.1:80");
    change.max_fails = UINT64_MAX;
    reject(&change);
    change = added("10.0.0.1:80");
    change.fail_timeout_ms = UINT64_MAX;
    reject(&change);
    change = added("10.0.0.1:80");
    memcpy(&change.backup, &other, 1);
    open_table();
    ck_assert_int_eq(upstream_changes_write(changes, 1, &change, &serial), 0);
    ck_assert(upstream_changes_read(changes, 0, &row));
    ck_assert_int_eq(row.backup, 1);
    close_table();
}
END_TEST

/* They leave room for changes. */
START_TEST(invalid_rows_are_replaced)
{
    struct upstream_change change = added("10.0.0.1:80");
    uint64_t serial;

    open_table();
    for (unsigned i = 0; i < LIMIT_UPSTREAM_CHANGES; i++)
        ck_assert_int_eq(upstream_changes_write(changes, 1, &change, &serial), 0);
    ck_assert_int_eq(upstream_changes_write(changes, 1, &change, &serial), -ENOSPC);
    upstream_changes_erase(changes, serial);
    change.kind = (enum upstream_change_kind)3;
    ck_assert_int_eq(upstream_changes_write(changes, 1, &change, &serial), 0);
    ck_assert_int_eq(write_name(1, "10.0.0.2:80"), 0);
    ck_assert_uint_eq(rows_of("10.0.0.2:80", &serial), 1);
    ck_assert_int_eq(write_name(1, "10.0.0.3:80"), -ENOSPC);
    close_table();
}
END_TEST

/* A worker that dies with the lock blocks no other one, and what it has changed is found. */
START_TEST(a_dead_holder_of_the_lock_is_noticed)
{
    NEEDS_ROBUST_FUTEXES();
    uint64_t count;
    pid_t child;

    changes = upstream_changes_create();
    count = upstream_changes_count(changes);
    child = fork();
    if (child == 0) {
        upstream_changes_lock(changes);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    upstream_changes_lock(changes);
    ck_assert_uint_gt(upstream_changes_count(changes), count);
    close_table();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        rows_are_written_and_erased, a_newer_configuration_begins_without_rows, a_full_table_keeps_its_rows,
        invalid_rows_are_not_read, invalid_rows_are_replaced, a_dead_holder_of_the_lock_is_noticed,
    };

    return suite_run("changes", tests, COUNT(tests));
}
