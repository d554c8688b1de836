// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Tunnels, each with a number and a socket below it. One call creates them, others use them.
//
// The bug, as in l2tp_tunnel_register: a new tunnel is put into the list, where others find it, before it has
// its socket. A call that finds it in between follows a pointer that is still NULL.
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define TUNNEL_CREATE _IO('S', 1)  // (number)
#define TUNNEL_MTU _IO('S', 2)     // (number) -> how many bytes fit into a packet

struct tunnel_socket {
  unsigned int mtu;
};

struct tunnel {
  struct list_head entry;
  unsigned long number;
  struct tunnel_socket* socket;  // set as long as the tunnel is in the list
};

static DEFINE_SPINLOCK(tunnels_lock);  // guards the list. Tunnels stay until the module goes
static LIST_HEAD(tunnels);

// The caller holds the lock.
static struct tunnel* find_tunnel(unsigned long number) {
  struct tunnel* tunnel;

  list_for_each_entry(tunnel, &tunnels, entry) {
    if (tunnel->number == number) return tunnel;
  }
  return NULL;
}

static noinline int register_tunnel(struct tunnel* tunnel, struct tunnel_socket* socket) {
  int error = 0;

#ifdef FIXED
  tunnel->socket = socket;
#endif
  spin_lock(&tunnels_lock);
  if (find_tunnel(tunnel->number))
    error = -EEXIST;
  else
    list_add(&tunnel->entry, &tunnels);
  spin_unlock(&tunnels_lock);
#ifndef FIXED
  tunnel->socket = socket;
#endif
  return error;
}

static long create_tunnel(unsigned long number) {
  struct tunnel* tunnel = kzalloc(sizeof(*tunnel), GFP_KERNEL);
  struct tunnel_socket* socket = kzalloc(sizeof(*socket), GFP_KERNEL);
  int error = -ENOMEM;

  if (tunnel && socket) {
    tunnel->number = number;
    socket->mtu = 1400;
    error = register_tunnel(tunnel, socket);
  }
  if (error) {
    kfree(socket);
    kfree(tunnel);
  }
  return error;
}

static noinline long tunnel_mtu(unsigned long number) {
  struct tunnel* tunnel;

  spin_lock(&tunnels_lock);
  tunnel = find_tunnel(number);
  spin_unlock(&tunnels_lock);
  return tunnel ? tunnel->socket->mtu : -ENOENT;
}

static long tunnel_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  switch (command) {
    case TUNNEL_CREATE:
      return create_tunnel(argument);
    case TUNNEL_MTU:
      return tunnel_mtu(argument);
    default:
      return -ENOTTY;
  }
}

static const struct file_operations tunnel_operations = {
    .owner = THIS_MODULE,
    .unlocked_ioctl = tunnel_ioctl,
};

static struct miscdevice tunnel_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "early_register",
    .fops = &tunnel_operations,
};

static int __init tunnel_init(void) {
  return misc_register(&tunnel_device);
}

static void __exit tunnel_exit(void) {
  struct tunnel *tunnel, *next;

  misc_deregister(&tunnel_device);
  list_for_each_entry_safe(tunnel, next, &tunnels, entry) {
    kfree(tunnel->socket);
    kfree(tunnel);
  }
}

module_init(tunnel_init);
module_exit(tunnel_exit);

MODULE_DESCRIPTION("Example: a tunnel that is registered before it is complete");
MODULE_LICENSE("GPL");
