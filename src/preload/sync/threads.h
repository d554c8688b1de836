// What a thread of an execution is: the one thing about threads that the two ways to execute do differently.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace slalom::preload {

// pthread_create, by the running agent at `pc`.
int create_agent(pthread_t* thread, const pthread_attr_t* wanted, void* (*start)(void*), void* argument,
                 uint64_t pc);
// Gives the new agent something to run on, where it is to have the life that run_agent() is. An errno
// value.
int start_thread(uint32_t index, const pthread_attr_t* wanted, pthread_t& created);
// The whole life of an agent other than the first, from its first turn to its end. Does not return.
void run_agent(uint32_t index);
[[noreturn]] void finish_agent();  // what the running one has for itself is destroyed; then it ends
void forget_keys();                // the calling thread is a new one: none of its keys has a value

}  // namespace slalom::preload
