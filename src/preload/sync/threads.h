// The threads of an execution. The two kinds of executions differ only in start_thread().
#pragma once

#include <pthread.h>

#include <cstdint>

namespace slalom::preload {

// pthread_create, by the running agent at `pc`.
int create_agent(pthread_t* thread, const pthread_attr_t* wanted, void* (*start)(void*), void* argument,
                 uint64_t pc);
// Starts a thread for the new agent; the thread must call run_agent(). Returns an errno value.
int start_thread(uint32_t index, const pthread_attr_t* wanted, pthread_t& created);
// Runs an agent other than the first from its first turn to its end. Does not return.
void run_agent(uint32_t index);
[[noreturn]] void finish_agent();  // destroys the running agent's thread-local objects, then ends it
void forget_keys();                // clears all keys, because the calling thread stands for a new one

}  // namespace slalom::preload
