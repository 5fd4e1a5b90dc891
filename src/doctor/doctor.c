/*
 * `sluice doctor`: examines the host, runs self-tests, and prints the findings as text or JSON. Exit status 0 if
 * kernel TLS encrypted a complete transfer. With --report, doctor_publish.c does the rest.
 */
#include "doctor/doctor.h"

#include "conf/template.h"
#include "doctor/doctor_publish.h"
#include "site/configuration.h"

#include <stdio.h>
#include <stdlib.h>

static void print_text(const struct diagnosis *diagnosis, bool works)
{
    static const char *const marks[] = {
        [VERDICT_GOOD] = "ok  ", [VERDICT_NOTE] = "note", [VERDICT_FAULT] = "NO  "};

    for (unsigned i = 0; i < diagnosis->count; i++) {
        const struct finding *finding = &diagnosis->findings[i];

        printf("%s  %s\n", marks[finding->verdict], finding->text);
        if (finding->advice[0])
            printf("      -> %s\n", finding->advice);
    }
    printf("\nkTLS: %s\n",
           works ? "works here" : "does not work here; connections are encrypted in user space");
}

/* Prints a JSON string; an empty one when out of memory. */
static void print_json_text(const char *text)
{
    struct buffer escaped = {0};

    (void)!template_escape_json(&escaped, str_from(text));
    printf("\"" STR_FMT "\"", STR_ARG(buffer_str(&escaped)));
    buffer_finish(&escaped);
}

static void print_json(const struct diagnosis *diagnosis, bool works)
{
    static const char *const verdicts[] = {
        [VERDICT_GOOD] = "good", [VERDICT_NOTE] = "note", [VERDICT_FAULT] = "fault"};

    printf("{\"ktls\": %s, \"findings\": [", works ? "true" : "false");
    for (unsigned i = 0; i < diagnosis->count; i++) {
        const struct finding *finding = &diagnosis->findings[i];

        printf("%s\n  {\"name\": \"%s\", \"verdict\": \"%s\", \"text\": ", i ? "," : "", finding->name,
               verdicts[finding->verdict]);
        print_json_text(finding->text);
        printf(", \"advice\": ");
        print_json_text(finding->advice);
        putchar('}');
    }
    printf("\n]}\n");
}

static void discard_line(void *owner, enum log_level level, struct str line)
{
}

/* Examines the certificates of the configuration. Returns false after printing its errors. */
static bool examine_configuration(struct diagnosis *diagnosis, const struct options *options)
{
    const struct configuration_source source = {
        .path = str_from(options->conf), .prefix = str_from(options->prefix), .test_only = true};
    struct log quiet = {.sink = discard_line};
    struct buffer diagnostics = {0};
    struct configuration *configuration = configuration_load(&source, &quiet, &diagnostics);
    struct clock clock;

    clock_read(&clock);
    if (configuration)
        doctor_examine_acme(diagnosis, &configuration->acme, clock_wall_s(&clock));
    else
        fprintf(stderr, STR_FMT, STR_ARG(buffer_str(&diagnostics)));
    buffer_finish(&diagnostics);
    configuration_destroy(configuration);
    return configuration != NULL;
}

int command_doctor(const struct options *options)
{
    struct diagnosis *diagnosis;
    bool works;

    if (options->report)
        return doctor_publish(options);
    diagnosis = calloc(1, sizeof(*diagnosis));
    if (!diagnosis || (options->conf && !examine_configuration(diagnosis, options))) {
        free(diagnosis);
        return EXIT_FAILURE;
    }
    works = doctor_examine_machine(diagnosis);
    if (options->json)
        print_json(diagnosis, works);
    else
        print_text(diagnosis, works);
    free(diagnosis);
    return works && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
