/* The limit of descriptors. */
#include "daemon/nofile.h"

#include <stdint.h>
#include <sys/resource.h>

enum { RESERVE = 64, PER_CLIENT = 2 };

void nofile_raise(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur == l.rlim_max)
        return;
    l.rlim_cur = l.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &l);
}

unsigned nofile_clients(unsigned processes)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0)
        return UINT32_MAX;
    if (l.rlim_cur < RESERVE + PER_CLIENT)
        return 1;
    rlim_t n = (l.rlim_cur - RESERVE) / PER_CLIENT;
    return n < UINT32_MAX / processes ? (unsigned)n * processes : UINT32_MAX;
}
