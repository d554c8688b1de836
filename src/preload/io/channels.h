// The descriptors that are ends of channels known to slalom (preload/io/channels.cc): pipes, sockets, event
// counters, and descriptors that wait for these.
#pragma once

#include <sys/socket.h>

#include <cstdint>

namespace slalom::preload {

inline constexpr int kMostDescriptors = 1024;

bool is_ours(int descriptor);
bool leads_out(int descriptor);                      // whether it may lead out of the program
bool waits(int descriptor);                          // whether calls on it wait
uint64_t deadline_of(int descriptor, short events);  // deadline of calls on a socket with a time limit
bool has_sockets();                                  // whether the program has sockets other than pairs
int other_name(int descriptor);  // another descriptor of the same channel end; -1 if there is none
// Returns the object of a channel's descriptor. Both ends of a channel are one object.
uint64_t object_of(int descriptor);
void add_channel(int descriptor);  // a new channel with one end
void add_socket(int descriptor);   // a socket that is not one of a pair
uint32_t new_channel();            // returns the number of a new channel
// Makes the descriptor an end of channel `number`; 0 for none.
void set_channel(int descriptor, uint32_t number);
int rename_channel(int from, int to);  // `to` names the same end; returns `to`

// recvmsg() with MSG_WAITALL on a stream (preload/io/messages.cc).
ssize_t receive_all(int descriptor, msghdr* message, int flags);

// Update the members of an epoll set (preload/io/polls.cc) when its descriptor is closed or duplicated.
void forget_set(int descriptor);
void copy_set(int from, int to);
// Call when a descriptor is closed: ends the timer behind it, unless the timer has another descriptor
// (preload/io/timers.cc). Part of the running agent's operation.
void forget_timer(int descriptor);

}  // namespace slalom::preload
