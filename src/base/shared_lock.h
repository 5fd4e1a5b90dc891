/*
 * A lock in shared memory, which the kernel releases if the thread that holds it dies (robust futexes,
 * set_robust_list(2)).
 *
 * A compromised process can write the word of the lock at any time. The only effects are that a thread waits, or that
 * two threads hold the lock. A robust mutex of pthreads is not sufficient: it has pointers in the shared memory, which
 * pthread_mutex_unlock follows and writes to.
 *
 * A thread that holds several of these locks must release them in reverse order, and must hold no robust mutex of
 * pthreads.
 */
#ifndef BASE_SHARED_LOCK_H
#define BASE_SHARED_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* The link of a list of the locks that a thread holds: in private memory, directly before each lock. */
struct shared_lock_link {
    void *next;
};

/* A zeroed lock is free. */
struct shared_lock {
    uint32_t word;                  /* the thread's number and bits of futex(2); atomic */
};

/* Waits for the lock. True: the previous holder died. */
bool shared_lock_acquire(struct shared_lock *lock);
void shared_lock_release(struct shared_lock *lock);

#endif
