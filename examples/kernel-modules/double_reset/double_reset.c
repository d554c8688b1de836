// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A gadget with one buffer, which one call allocates and another one releases.
//
// The bug, as in drivers whose reset may come from two sides: a reset reads the buffer's pointer under the
// lock, and clears it under the lock again, before it frees it. Two resets see the same buffer, and both free
// it. The lists of free memory are then corrupt, which the kernel notices much later or never.
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define GADGET_RESET _IO('S', 1)
#define BUFFER_SIZE 96

static DEFINE_SPINLOCK(gadget_lock);  // guards `buffer`
static void* buffer;                  // NULL if it is reset

static noinline long reset(void) {
  void* old;

  spin_lock(&gadget_lock);
  old = buffer;
#ifdef FIXED
  buffer = NULL;
#endif
  spin_unlock(&gadget_lock);
#ifndef FIXED
  spin_lock(&gadget_lock);
  if (buffer == old) buffer = NULL;
  spin_unlock(&gadget_lock);
#endif
  kfree(old);
  return 0;
}

static int gadget_open(struct inode* inode, struct file* file) {
  void* fresh = kzalloc(BUFFER_SIZE, GFP_KERNEL);

  if (!fresh) return -ENOMEM;
  spin_lock(&gadget_lock);
  if (!buffer) {
    buffer = fresh;
    fresh = NULL;
  }
  spin_unlock(&gadget_lock);
  kfree(fresh);
  return 0;
}

static long gadget_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  return command == GADGET_RESET ? reset() : -ENOTTY;
}

static const struct file_operations gadget_operations = {
    .owner = THIS_MODULE,
    .open = gadget_open,
    .unlocked_ioctl = gadget_ioctl,
};

static struct miscdevice gadget = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "double_reset",
    .fops = &gadget_operations,
};

static int __init gadget_init(void) {
  return misc_register(&gadget);
}

static void __exit gadget_exit(void) {
  misc_deregister(&gadget);
  kfree(buffer);
}

module_init(gadget_init);
module_exit(gadget_exit);

MODULE_DESCRIPTION("Example: two resets that free one buffer");
MODULE_LICENSE("GPL");
