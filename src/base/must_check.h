/*
 * MUST_CHECK: the compiler warns if the result is ignored.
 */
#ifndef BASE_MUST_CHECK_H
#define BASE_MUST_CHECK_H

#define MUST_CHECK         __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a)  __attribute__((format(printf, f, a)))

#endif
