/*
 * `sluice doctor`: examines, tries, and prints what it found for people or as JSON. Exit status 0
 * where the kernel encrypted a transfer that arrived whole.
 */
#include "server/doctor.h"

#include "build_options.h"
#include "server/commands.h"
#include "wire/wire.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

void doctor_find(struct diagnosis *diagnosis, const char *name, enum verdict verdict, const char *format, ...)
{
    struct finding *finding;
    va_list args;

    if (diagnosis->count < DOCTOR_FINDINGS)
        diagnosis->count++;
    finding = &diagnosis->findings[diagnosis->count - 1];
    finding->name = name;
    finding->verdict = verdict;
    finding->advice[0] = '\0';
    va_start(args, format);
    vsnprintf(finding->text, sizeof(finding->text), format, args);
    va_end(args);
}

void doctor_advise(struct diagnosis *diagnosis, const char *format, ...)
{
    struct finding *finding = &diagnosis->findings[diagnosis->count - 1];
    va_list args;

    va_start(args, format);
    vsnprintf(finding->advice, sizeof(finding->advice), format, args);
    va_end(args);
}

static void judge_handshake(struct diagnosis *diagnosis, const struct trial *trial)
{
    doctor_find(diagnosis, "openssl", VERDICT_GOOD, "built with %s, running with %s", OPENSSL_VERSION_TEXT,
                OpenSSL_version(OPENSSL_VERSION));
    if (!trial->handshake) {
        doctor_find(diagnosis, "handshake", VERDICT_FAULT, "a handshake with itself failed: %s",
                    trial->fault);
        doctor_advise(diagnosis,
                      "kernel TLS cannot be tried without it; is a system-wide openssl.cnf too strict, or "
                      "loopback (127.0.0.1) down?");
        return;
    }
    if (trial->key_offered)
        doctor_find(diagnosis, "openssl_ktls", VERDICT_GOOD, "OpenSSL offers its write key (%s, %s)",
                    trial->protocol, trial->cipher);
    else {
        doctor_find(diagnosis, "openssl_ktls", VERDICT_FAULT, "OpenSSL offers no write key (%s, %s)",
                    trial->protocol, trial->cipher);
        doctor_advise(diagnosis,
                      "this libssl was built without kTLS: it needs the configure option enable-ktls, as "
                      "Debian's and Ubuntu's have it");
    }
}

/* True where the kernel encrypted, and the bytes arrived. */
static bool judge_transfer(struct diagnosis *diagnosis, const struct trial *trial)
{
    const char *path = wire_path_name((enum wire_path)trial->path);
    const char *reason = wire_reason_name(trial->reason);
    bool by_kernel = trial->path == PATH_KTLS_SENDFILE;

    if (!trial->handshake)
        return false;
    if (!trial->delivered) {
        doctor_find(diagnosis, "transfer", VERDICT_FAULT, "a file sent to itself did not arrive whole: %s",
                    trial->fault);
        doctor_advise(diagnosis, "run with ssl_ktls: off and report this: bytes must never be lost");
        return false;
    }
    if (by_kernel) {
        doctor_find(diagnosis, "transfer", VERDICT_GOOD,
                    "the kernel encrypted %llu bytes by sendfile, and the client decrypted all of them right",
                    (unsigned long long)trial->bytes);
        return true;
    }
    doctor_find(diagnosis, "transfer", VERDICT_FAULT,
                "%llu bytes arrived right, but encrypted in user space (tls_path %s, tls_path_reason %s)",
                (unsigned long long)trial->bytes, path, reason);
    doctor_advise(diagnosis, "the server works all the same; files just cost more CPU");
    return false;
}

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

/* Our own texts hold no control bytes but what a kernel's name might smuggle in. */
static void print_json_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte == '"' || byte == '\\')
            printf("\\%c", byte);
        else if (byte < 0x20 || byte >= 0x7f)
            printf("\\u%04x", byte);
        else
            putchar(byte);
    }
    putchar('"');
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

int command_doctor(const struct options *options)
{
    struct diagnosis *diagnosis = calloc(1, sizeof(*diagnosis));
    struct trial trial = {.handshake = false};
    bool works;

    if (!diagnosis)
        return EXIT_FAILURE;
    doctor_examine_host(diagnosis);
    doctor_try(&diagnosis->support, "TLS_AES_128_GCM_SHA256", &trial);
    judge_handshake(diagnosis, &trial);
    works = judge_transfer(diagnosis, &trial);
    if (options->json)
        print_json(diagnosis, works);
    else
        print_text(diagnosis, works);
    free(diagnosis);
    return works && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
