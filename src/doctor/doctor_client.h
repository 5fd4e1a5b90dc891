/* The other end of the doctor's self_test, run in a child process. */
#ifndef DOCTOR_DOCTOR_CLIENT_H
#define DOCTOR_DOCTOR_CLIENT_H

#include "doctor/doctor.h"

enum doctor_client_end {
    DOCTOR_CLIENT_WHOLE,            /* every byte right, then close_notify */
    DOCTOR_CLIENT_NO_HANDSHAKE,
    DOCTOR_CLIENT_WRONG,            /* a byte differs, or there are too many */
    DOCTOR_CLIENT_SHORT,            /* the stream ended early */
    DOCTOR_CLIENT_CUT,              /* all bytes, but no close_notify */
};

/* The byte of the self_test's file at an offset. */
unsigned char doctor_pattern(uint64_t at);
/* Connects over `fd` (blocking, closed at the end) with nothing but the suite, and reads `expected` bytes. */
enum doctor_client_end doctor_client_run(int fd, const struct suite *suite, uint64_t expected);

#endif
