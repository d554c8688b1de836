// What the parts of the agent share.
#ifndef SLALOM_AGENT_H
#define SLALOM_AGENT_H

#include <sys/types.h>

// Prints what could not be done, about what, and why (errno).
void complain(const char* what, const char* about);

// "PATH PARAMETERS". NULL: it is loaded; else what went wrong, with the reason in errno.
const char* load_module(char* line);

// By the shell, with the console as its terminal (NULL: what is typed there). Gives its status, as a shell
// does.
int run(const char* command);
// The two halves of that: in a new process, and in this one.
void run_shell(const char* command) __attribute__((noreturn));
int status_of(pid_t child);

// Test mode (test.c): does nothing if slalom has no test for this machine; else it never returns.
void run_test(void);

// One flow of a test whose program is a list of system calls (flow.c).
#define FLOW_NAME "slalom-flow"
int run_flow(long flow);

#endif
