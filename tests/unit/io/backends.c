/* The backends on which the tests check every rule of the loop's contract. */
#include "fixture.h"

#include "io/backends.h"
#include "scripted.h"

int kernel_backend_count(void)
{
    int count = 0;

    while (loop_backends[count])
        count++;
    return count;
}

int tested_backend_count(void)
{
    return kernel_backend_count() + 1;
}

const struct loop_backend *tested_backend(int index)
{
    return index < kernel_backend_count() ? loop_backends[index] : &loop_backend_scripted;
}
