/*
 * The order of examinations on this host.
 */
#include "doctor/doctor.h"

#include "build_options.h"
#include "sandbox/sandbox.h"
#include "tls/ktls_measure.h"
#include "tls/tls_context.h"

#include "io/backends.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const struct host host_here = {"", ktls_device_query};

static void ignore_line(void *owner, enum log_level level, struct str line)
{
}

static void examine_loop(struct diagnosis *diagnosis)
{
    struct log silent = {.level = LOG_EMERG, .sink = ignore_line};

    if (strcmp(loop_backends[0]->name, "io_uring") != 0)
        doctor_report_loop(diagnosis, &host_here, "io_uring", -ENOPKG);
    for (size_t i = 0; loop_backends[i]; i++) {
        struct loop loop;
        int error = loop_open_backend(&loop, loop_backends[i], &silent);

        if (error == 0)
            loop_close(&loop);
        doctor_report_loop(diagnosis, &host_here, loop_backends[i]->name, error);
    }
}

static void examine_groups(struct diagnosis *diagnosis)
{
    if (tls_has_group("X25519MLKEM768")) {
        doctor_add(diagnosis, "key-exchange", VERDICT_GOOD,
                   "key exchange: X25519MLKEM768 (post-quantum) is preferred");
        return;
    }
    doctor_add(diagnosis, "key-exchange", VERDICT_NOTE,
               "key exchange: this OpenSSL has no X25519MLKEM768; X25519 is preferred");
    doctor_advise(diagnosis, "traffic recorded today can be decrypted by future quantum computers; OpenSSL 3.5 "
                             "(Debian 13) supports it");
}

static void advise_aead(struct diagnosis *diagnosis, const struct aead_choice *choice, uint8_t cipher)
{
    if (choice->state[AEAD_OPENSSL][cipher] == AEAD_WRONG)
        doctor_advise(diagnosis, "OpenSSL encrypts incorrectly: reinstall it, and test the hardware");
    else if (choice->state[AEAD_IPSEC_MB][cipher] == AEAD_WRONG)
        doctor_advise(diagnosis, "ipsec-mb encrypts incorrectly on this processor, and is not used");
    else if (choice->state[AEAD_IPSEC_MB][cipher] == AEAD_NOT_BUILT && cipher == RECORD_AES_128_GCM && BUILD_AMD64)
        doctor_advise(diagnosis, "ipsec-mb may be faster: install libipsec-mb-dev, and build sluice again");
}

void doctor_report_aead(struct diagnosis *diagnosis, const struct aead_choice *choice)
{
    char text[192];

    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++) {
        bool wrong = false;

        for (unsigned kind = 0; kind < AEAD_KINDS; kind++)
            wrong |= choice->state[kind][cipher] == AEAD_WRONG;
        aead_describe(choice, cipher, text, sizeof(text));
        doctor_add(diagnosis, "aead", wrong ? VERDICT_NOTE : VERDICT_GOOD, "%s in user space: %s",
                   record_cipher_name(cipher), text);
        advise_aead(diagnosis, choice, cipher);
    }
}

void doctor_report_choice(struct diagnosis *diagnosis, const struct ktls_choice *choice)
{
    char text[192];

    for (uint8_t cipher = RECORD_AES_128_GCM; cipher < RECORD_CIPHERS; cipher++) {
        if (ktls_supports(&diagnosis->support, cipher))
            doctor_add(diagnosis, "cost", VERDICT_GOOD, "%s with ssl_ktls: auto: " STR_FMT, record_cipher_name(cipher),
                       STR_ARG(ktls_choice_describe(choice, cipher, text, sizeof(text))));
    }
}

static void examine_encryption(struct diagnosis *diagnosis)
{
    struct aead_choice aead;
    struct ktls_choice choice;

    aead_examine(TLS_AEAD_AUTO, &aead);
    doctor_report_aead(diagnosis, &aead);
    ktls_examine(&ktls_calls_kernel, &diagnosis->support, &aead, &choice);
    doctor_report_choice(diagnosis, &choice);
}

void doctor_report_sandbox(struct diagnosis *diagnosis, const char *part, const char *missing)
{
    if (!missing) {
        doctor_add(diagnosis, "sandbox", VERDICT_GOOD, "sandbox: %s restricts the workers", part);
        return;
    }
    doctor_add(diagnosis, "sandbox", VERDICT_NOTE, "sandbox: no %s: %s", part, missing);
    doctor_advise(diagnosis, "workers run without this part of `sandbox`; a newer kernel, or a build with all "
                             "libraries of the README, has it");
}

static void examine_sandbox(struct diagnosis *diagnosis)
{
    char missing[160];

    for (enum sandbox_part part = 0; part < SANDBOX_PARTS; part++) {
        bool found = sandbox_probe(part, missing, sizeof(missing)) == 0;

        doctor_report_sandbox(diagnosis, sandbox_part_names[part], found ? NULL : missing);
    }
}

void doctor_examine_host(struct diagnosis *diagnosis)
{
    ktls_probe(&ktls_calls_kernel, &diagnosis->support);
    doctor_examine_module(diagnosis, &host_here);
    examine_loop(diagnosis);
    examine_groups(diagnosis);
    examine_encryption(diagnosis);
    examine_sandbox(diagnosis);
    doctor_examine_limits(diagnosis, &host_here);
    doctor_examine_buffers(diagnosis, &host_here);
    doctor_examine_devices(diagnosis, &host_here);
}
