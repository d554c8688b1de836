// Which descriptors are ends of channels that slalom knows (preload/io/channels.cc): pipes, sockets, event
// counters and what waits for these.
#pragma once

#include <sys/socket.h>

#include <cstdint>

namespace slalom::preload {

inline constexpr int kMostDescriptors = 1024;

bool is_ours(int descriptor);
bool leads_out(int descriptor);                      // out of the program, perhaps
bool waits(int descriptor);                          // do calls on it?
uint64_t deadline_of(int descriptor, short events);  // of a socket on which calls wait only for so long
bool has_sockets();                                  // any that are no pairs
int other_name(int descriptor);                      // of the same channel, of one of ours; -1: it has none
uint64_t object_of(int descriptor);                 // of one of ours; both ends of one channel are one object
void add_channel(int descriptor);                   // a new one, with one end
void add_socket(int descriptor);                    // one that is no pair
uint32_t new_channel();                             // the number of another one
void set_channel(int descriptor, uint32_t number);  // it is an end of that; 0: of none
int rename_channel(int from, int to);               // another name for the same one; gives that

// recvmsg() with MSG_WAITALL, of a stream (preload/io/messages.cc).
ssize_t receive_all(int descriptor, msghdr* message, int flags);

// What an epoll set waits for (preload/io/polls.cc), when its descriptor is closed or gets another name.
void forget_set(int descriptor);
void copy_set(int from, int to);
// It is being closed: a timer that it stands for ends, unless it has another name (preload/io/timers.cc). A
// part of the running agent's operation.
void forget_timer(int descriptor);

}  // namespace slalom::preload
