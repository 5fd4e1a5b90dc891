/* The backends that every rule of the loop's contract is tested on. */
#include "fixture.h"

#include "io/backends.h"

int tested_backend_count(void)
{
    int count = 0;

    while (loop_backends[count])
        count++;
    return count;
}

const struct loop_backend *tested_backend(int index)
{
    return loop_backends[index];
}
