/*
 * Writes the report: a table of sections decides where each finding is printed.
 */
#include "doctor/doctor_markdown.h"

#define OTHER_SECTION "Other checks"

/* The sections of the findings, in order; a finding that no section names is printed under OTHER_SECTION. */
static const struct section {
    const char *title;
    const char *findings[10];
} sections[] = {
    {"Kernel TLS", {"module", "autoload", "rekey", "handshake", "openssl_ktls", "transfer", "cipher", "cost"}},
    {"Encryption in user space", {"aead", "openssl", "key-exchange"}},
    {"Network devices", {"device"}},
    {"Descriptors and buffers", {"files", "memlock", "buffers", "wmem_max"}},
};

enum { SECTIONS = sizeof(sections) / sizeof(sections[0]) };

static bool belongs_to(const struct section *section, const struct finding *finding)
{
    for (size_t i = 0; i < sizeof(section->findings) / sizeof(section->findings[0]) && section->findings[i]; i++) {
        if (strcmp(section->findings[i], finding->name) == 0)
            return true;
    }
    return false;
}

/* Returns the index of the section of a finding; SECTIONS: none names it. */
static unsigned section_of(const struct finding *finding)
{
    unsigned section = 0;

    while (section < SECTIONS && !belongs_to(&sections[section], finding))
        section++;
    return section;
}

static void write_section(FILE *out, const struct diagnosis *diagnosis, unsigned section)
{
    static const char *const marks[] = {
        [VERDICT_GOOD] = "ok", [VERDICT_NOTE] = "note", [VERDICT_FAULT] = "**no**"};

    fprintf(out, "\n## %s\n\n", section < SECTIONS ? sections[section].title : OTHER_SECTION);
    for (unsigned i = 0; i < diagnosis->count; i++) {
        const struct finding *finding = &diagnosis->findings[i];

        if (section_of(finding) != section)
            continue;
        fprintf(out, "- %s: ", marks[finding->verdict]);
        markdown_text(out, finding->text);
        if (finding->advice[0]) {
            fputs(" (advice: ", out);
            markdown_text(out, finding->advice);
            putc(')', out);
        }
        putc('\n', out);
    }
}

static void write_heading(FILE *out, bool works)
{
    fputs("# Report of sluice doctor, ", out);
    markdown_date(out);
    fprintf(out,
            "\n\nKernel TLS %s on this machine. The report contains no configuration, certificates, keys, names of\n"
            "users and hosts, or addresses. Read it before you publish it.\n",
            works ? "works" : "does not work");
}

void doctor_markdown(FILE *out, const struct host *host, const struct diagnosis *diagnosis, bool works,
                     const struct benchmark *benchmark)
{
    write_heading(out, works);
    doctor_machine_versions(out, host);
    doctor_machine_processor(out, host);
    doctor_machine_limits(out, host);
    for (unsigned section = 0; section <= SECTIONS; section++)
        write_section(out, diagnosis, section);
    if (benchmark)
        doctor_markdown_benchmark(out, host, benchmark);
}
