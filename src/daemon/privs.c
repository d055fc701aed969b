/* Process attributes. */
#include "daemon/privs.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

void privs_harden(void)
{
    struct rlimit none = {0, 0}, files;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    setrlimit(RLIMIT_CORE, &none);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of write(), as a full disk is */
}
