/* The first call into OpenSSL, made by every constructor of this room. */
#ifndef RETRYD_IO_TLS_TLSINIT_H
#define RETRYD_IO_TLS_TLSINIT_H

/* Once a process, cheap afterwards: no configuration file (OPENSSL_CONF changes nothing, security
 * requirement G2) and a heap for private keys that is locked in memory where the system permits,
 * and left out of core dumps (H4). Comes too late when the process used OpenSSL before. */
void tlsinit(void);

#endif
