// Declarations that the parts of the agent share.
#ifndef SLALOM_AGENT_H
#define SLALOM_AGENT_H

#include <sys/types.h>

// Prints an error: `what` failed, for `about`, and the reason (errno).
void complain(const char* what, const char* about);

// `line`: "PATH PARAMETERS". Returns NULL if the module was loaded; otherwise the problem, with the reason in
// errno.
const char* load_module(char* line);

// Runs the command in a shell with the console as its terminal; NULL: an interactive shell. Returns the
// status as a shell does.
int run(const char* command);
// The two halves of run(): in a new process, and in this one.
void run_shell(const char* command) __attribute__((noreturn));
int status_of(pid_t child);

// Test mode (test.c). Returns only if slalom has no test for this machine.
void run_test(void);

#define MAX_FLOWS 8

// One flow of a test whose program is a list of system calls (flow.c).
#define FLOW_NAME "slalom-flow"
int run_flow(long flow) __attribute__((noreturn));
// The same in this thread, which is on the flow's CPU already, up to the end of the test. `is_prepared`: the
// flow has calls to make before it is ready.
void execute_flow(long flow, int is_prepared);
// Makes the calls that are prepared for all flows. `shares_memory`: all flows will be threads of this
// process. Returns 0 if there are none.
int prepare_all(int shares_memory);

#endif
