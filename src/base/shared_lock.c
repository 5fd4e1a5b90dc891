/*
 * The protocol of robust futexes: when a thread dies, the kernel reads its list of locks, and list_op_pending for a
 * lock that it was acquiring or releasing. The list is in private memory.
 */
#include "base/shared_lock.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local struct robust_list_head held; /* replaces the list of the C library, which is not used */
static _Thread_local uint32_t thread;              /* its number; 0: `held` is not registered */

/* A child process has another number, and no registered list. */
static void reset_thread(void)
{
    thread = 0;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, reset_thread);
}

static void register_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, watch_forks);
    held.list.next = &held.list;
    held.futex_offset = sizeof(struct shared_lock_link);
    held.list_op_pending = NULL;
    thread = (uint32_t)syscall(SYS_gettid);
    (void)syscall(SYS_set_robust_list, &held, sizeof(held));
}

static struct robust_list *link_of(struct shared_lock *lock)
{
    _Static_assert(sizeof(struct shared_lock_link) == sizeof(struct robust_list), "the link is that of the kernel");
    return (struct robust_list *)(void *)((struct shared_lock_link *)(void *)lock - 1);
}

/* The kernel may read the list after any of these steps: their order is kept. */
static void set_link(struct robust_list **link, struct robust_list *to)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(link, to, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static bool change_word(struct shared_lock *lock, uint32_t *seen, uint32_t word)
{
    return __atomic_compare_exchange_n(&lock->word, seen, word, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* A thread that has waited sets FUTEX_WAITERS: other threads may still wait. */
static bool wait_for_lock(struct shared_lock *lock, uint32_t seen)
{
    for (;;) {
        if ((seen & FUTEX_TID_MASK) == 0) {
            if (change_word(lock, &seen, thread | FUTEX_WAITERS))
                return seen & FUTEX_OWNER_DIED;
        } else if (seen & FUTEX_WAITERS || change_word(lock, &seen, seen | FUTEX_WAITERS)) {
            (void)syscall(SYS_futex, &lock->word, FUTEX_WAIT, seen | FUTEX_WAITERS, NULL, NULL, 0);
            seen = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);
        }
    }
}

bool shared_lock_acquire(struct shared_lock *lock)
{
    uint32_t seen = 0;
    bool died;

    if (thread == 0)
        register_thread();
    set_link(&held.list_op_pending, link_of(lock));
    died = !change_word(lock, &seen, thread) && wait_for_lock(lock, seen);
    set_link(&link_of(lock)->next, held.list.next);
    set_link(&held.list.next, link_of(lock));
    set_link(&held.list_op_pending, NULL);
    return died;
}

void shared_lock_release(struct shared_lock *lock)
{
    set_link(&held.list_op_pending, link_of(lock));
    set_link(&held.list.next, link_of(lock)->next);
    if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) & FUTEX_WAITERS)
        (void)syscall(SYS_futex, &lock->word, FUTEX_WAKE, 1, NULL, NULL, 0);
    set_link(&held.list_op_pending, NULL);
}
