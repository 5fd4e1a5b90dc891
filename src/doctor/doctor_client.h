/*
 * The client of the self-test, run in a child process.
 */
#ifndef DOCTOR_DOCTOR_CLIENT_H
#define DOCTOR_DOCTOR_CLIENT_H

#include "doctor/doctor.h"

enum doctor_client_end {
    DOCTOR_CLIENT_COMPLETE,         /* all bytes arrived and were correct, then close_notify */
    DOCTOR_CLIENT_NO_HANDSHAKE,
    DOCTOR_CLIENT_WRONG,            /* a byte differs, or more bytes arrived than expected */
    DOCTOR_CLIENT_SHORT,            /* the stream ended early */
    DOCTOR_CLIENT_NO_CLOSE_NOTIFY,  /* all bytes, but no close_notify */
};

/* Returns the byte at an offset of the self-test's file. */
unsigned char doctor_pattern(uint64_t at);
/* Connects over `fd` (blocking, closed at the end) with only this suite, and reads `expected` bytes. */
enum doctor_client_end doctor_client_run(int fd, const struct suite *suite, uint64_t expected);

#endif
