// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A session that is opened, sent through and closed, in the manner of a driver that keeps its clients in a
// table: a sender takes a reference, and the last user frees the session.
//
// The bug, as in many a lookup of a socket, a timer or a queue: sending finds the session under the table's
// lock, and takes its reference after releasing that lock. A close in between drops the last reference and
// frees the session, so the reference is counted in free memory. The counters are atomic, so there is no data
// race, and nothing crashes.
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define SESSION_OPEN _IO('S', 1)
#define SESSION_SEND _IO('S', 2)
#define SESSION_CLOSE _IO('S', 3)

struct session {
  atomic_t references;
  atomic_t sent;
};

static DEFINE_SPINLOCK(table_lock);  // guards `table`
static struct session* table;        // NULL if there is no session

static void put_session(struct session* session) {
  if (atomic_dec_and_test(&session->references)) kfree(session);
}

static long open_session(void) {
  struct session* session = kzalloc(sizeof(*session), GFP_KERNEL);
  long result = -EBUSY;

  if (!session) return -ENOMEM;
  atomic_set(&session->references, 1);
  spin_lock(&table_lock);
  if (!table) {
    table = session;
    session = NULL;
    result = 0;
  }
  spin_unlock(&table_lock);
  kfree(session);
  return result;
}

static noinline long send(void) {
  struct session* session;

  spin_lock(&table_lock);
  session = table;
#ifdef FIXED
  if (session) atomic_inc(&session->references);
#endif
  spin_unlock(&table_lock);
  if (!session) return -ENOTCONN;
#ifndef FIXED
  atomic_inc(&session->references);
#endif
  atomic_inc(&session->sent);
  put_session(session);
  return 0;
}

static noinline long close_session(void) {
  struct session* session;

  spin_lock(&table_lock);
  session = table;
  table = NULL;
  spin_unlock(&table_lock);
  if (!session) return -ENOTCONN;
  put_session(session);
  return 0;
}

static long session_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  switch (command) {
    case SESSION_OPEN:
      return open_session();
    case SESSION_SEND:
      return send();
    case SESSION_CLOSE:
      return close_session();
    default:
      return -ENOTTY;
  }
}

static const struct file_operations session_operations = {
    .owner = THIS_MODULE,
    .unlocked_ioctl = session_ioctl,
};

static struct miscdevice session_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "late_reference",
    .fops = &session_operations,
};

static int __init session_init(void) {
  return misc_register(&session_device);
}

static void __exit session_exit(void) {
  misc_deregister(&session_device);
  close_session();
}

module_init(session_init);
module_exit(session_exit);

MODULE_DESCRIPTION("Example: a reference that is taken too late");
MODULE_LICENSE("GPL");
