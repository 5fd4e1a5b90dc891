/* An order of a certificate for a.test and b.test, by a client that is a shell script. */
#ifndef TEST_ACME_ORDER_H
#define TEST_ACME_ORDER_H

#include "acme/acme_file.h"
#include "acme/acme_order.h"
#include "made.h"

static void drop_line(void *owner, enum log_level level, struct str line)
{
}

static struct log lines = {.level = LOG_INFO, .sink = drop_line};
static struct acme_events events;
static struct str names[] = {{"a.test", 6}, {"b.test", 6}};
static struct acme_settings settings;
static struct acme_certificate certificate;
static struct acme acme;
static struct acme_order order;
static char error[LIMIT_ACME_ERROR], state[64], file[96], challenges[96];

/* Records its arguments. */
#define RECORDS                                                                                                        \
    "#!/bin/sh\nPATH=/usr/bin:/bin\nprintf '%s ' \"$@\" >>$HOME/../../arguments; echo >>$HOME/../../arguments\n"

/* `client`: the name of the program; `script`: its text. */
static inline void order_set_up(int client, const char *program, const char *script)
{
    folder_make();
    snprintf(state, sizeof(state), "%s", folder);
    snprintf(file, sizeof(file), "%s/installed.pem", folder);
    snprintf(challenges, sizeof(challenges), "%s/challenges", folder);
    file_write(path_of(program), script, 0755);
    ck_assert_int_eq(mkdir(path_of("clients"), 0700), 0);
    ck_assert_int_eq(mkdir(challenges, 0755), 0);
    make_certificate(path_of("chain"), path_of("key"), "DNS:a.test,DNS:b.test", 0, 1000);
    setenv("PATH", folder, 1);
    unsetenv("NEW_STATUS");
    settings = (struct acme_settings){.email = {"admin@a.test, more", 12},
                                      .client = client,
                                      .key_type = ACME_RSA4096,
                                      .dns_propagation = true,
                                      .timeout_ms = 20000};
    certificate = (struct acme_certificate){.name = names[0],
                                            .names = names,
                                            .name_count = 2,
                                            .settings = &settings,
                                            .file = str_from(file)};
    acme = (struct acme){.items = &certificate,
                         .count = 1,
                         .state = str_from(state),
                         .challenges = str_from(challenges)};
    order = (struct acme_order){.acme = &acme,
                                .certificate = &certificate,
                                .directory = "https://ca.test/dir",
                                .hook = "/the/hook",
                                .events = &events,
                                .log = &lines};
    ck_assert_int_eq(acme_events_open(&events, -1), 0);
}

static inline void order_tear_down(void)
{
    acme_events_close(&events);
    setenv("PATH", "/usr/bin:/bin", 1);
    folder_remove();
}

/* The client's folder in the recorded arguments is replaced by CONF. */
static inline void check_arguments(const char *expected)
{
    char found[4096], command[256];
    FILE *stream;
    size_t length;

    setenv("PATH", "/usr/bin:/bin", 1);
    snprintf(command, sizeof(command), "sed 's|[^ ]*/clients/[a-z]*-[0-9a-f]*|CONF|g' %s/arguments", folder);
    stream = popen(command, "re");
    length = fread(found, 1, sizeof(found) - 1, stream);
    pclose(stream);
    found[length] = '\0';
    ck_assert_str_eq(found, expected);
    setenv("PATH", folder, 1);
}

#endif
