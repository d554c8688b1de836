// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A socket with a port of its own: bind gives it a port that the caller chooses, connect gives it a free one
// if it has none.
//
// The bug, as in protocols that bind implicitly: connect sees that there is no port, and requests one. A bind
// in between has given the socket its port, so the request fails with bind's error for "already bound", and
// connect returns that error to its caller, who has never bound anything. In no serial order of the two calls
// does connect fail. There is no data race.
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/spinlock.h>

#define SOCKET_BIND _IO('S', 1)  // (port, 1 to 65535)
#define SOCKET_CONNECT _IO('S', 2)
#define SOCKET_PORT _IO('S', 3)  // -> its port; 0: none

#define FIRST_FREE_PORT 49152

enum socket_state { SOCKET_NEW, SOCKET_CONNECTED };

static struct {
  spinlock_t lock;  // guards what follows
  enum socket_state state;
  unsigned int port;  // 0 if not bound
} sock = {.lock = __SPIN_LOCK_UNLOCKED(sock.lock)};

static unsigned int get_port(void) {
  unsigned int port;

  spin_lock(&sock.lock);
  port = sock.port;
  spin_unlock(&sock.lock);
  return port;
}

static long bind_port(unsigned long port) {
  long error = -EINVAL;

  if (port == 0 || port > 65535) return -EADDRNOTAVAIL;
  spin_lock(&sock.lock);
  if (sock.port == 0) {
    sock.port = port;
    error = 0;
  }
  spin_unlock(&sock.lock);
  return error;
}

static noinline long connect_socket(void) {
  long error = 0;

  if (get_port() == 0) {
    error = bind_port(FIRST_FREE_PORT);
#ifdef FIXED
    if (error == -EINVAL) error = 0;  // another caller has bound it, which is as good
#endif
  }
  if (error) return error;
  spin_lock(&sock.lock);
  if (sock.state == SOCKET_CONNECTED) error = -EISCONN;
  sock.state = SOCKET_CONNECTED;
  spin_unlock(&sock.lock);
  return error;
}

static long socket_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  switch (command) {
    case SOCKET_BIND:
      return bind_port(argument);
    case SOCKET_CONNECT:
      return connect_socket();
    case SOCKET_PORT:
      return get_port();
    default:
      return -ENOTTY;
  }
}

static const struct file_operations socket_operations = {
    .owner = THIS_MODULE,
    .unlocked_ioctl = socket_ioctl,
};

static struct miscdevice socket_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "socket_error",
    .fops = &socket_operations,
};
module_misc_device(socket_device);

MODULE_DESCRIPTION("Example: concurrent bind and connect, and an error that neither should give");
MODULE_LICENSE("GPL");
