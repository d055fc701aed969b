/* The verbs of the command line: run, check, explain, simulate, exec, env, ca, version. */
#ifndef RETRYD_CMD_CMD_H
#define RETRYD_CMD_CMD_H

/* Exit status: 0 good, 1 the thing asked about is bad, 2 usage or configuration, as documented in
 * retryd(8). Each verb gets argv from the verb on. */
int cmd_main(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_env(int argc, char **argv);

#endif
