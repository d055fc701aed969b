/* System calls that fail on order, for the code under test only (security requirement M5): the
 * linker puts these in the place of recv, send, socket, connect, shutdown, open, mkostemp, pwrite
 * and pread. */
#ifndef RETRYD_FUZZ_FAULTS_H
#define RETRYD_FUZZ_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* The code under test runs; else every call is the true one. */
extern bool faults_on;
/* So many calls failed or were cut short, in all runs. */
extern uint64_t faults_injected;
/* In this run a connection was told to be broken that was not. */
extern bool faults_broke;

void faults_reset(void);
/* Orders one of a table of faults, by number. */
void faults_order(unsigned which);

#endif
