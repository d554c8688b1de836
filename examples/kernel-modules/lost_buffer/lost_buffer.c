// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A buffer that is made when it is first needed, in the manner of drivers that allocate lazily.
//
// The bug, as in many a get-or-create: a call that finds no buffer releases the lock, takes it again to store
// its own buffer, and does not check again. Of two concurrent calls one overwrites the other one's pointer,
// and that buffer is lost. Every access has its lock, both calls succeed, and nothing ever crashes: the
// memory is gone.
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define BUFFER_NEED _IO('S', 1)

struct buffer {
  char data[96];
};

static DEFINE_SPINLOCK(buffer_lock);  // guards `buffer`
static struct buffer* buffer;         // NULL until it is needed

static noinline long need_buffer(void) {
  struct buffer* made = kzalloc(sizeof(*made), GFP_KERNEL);
  bool is_there;

  if (!made) return -ENOMEM;
  spin_lock(&buffer_lock);
  is_there = buffer != NULL;
  spin_unlock(&buffer_lock);
  if (!is_there) {
    spin_lock(&buffer_lock);
#ifdef FIXED
    if (!buffer) swap(buffer, made);
#else
    buffer = made;
    made = NULL;
#endif
    spin_unlock(&buffer_lock);
  }
  kfree(made);
  return 0;
}

static long buffer_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  return command == BUFFER_NEED ? need_buffer() : -ENOTTY;
}

static const struct file_operations buffer_operations = {
    .owner = THIS_MODULE,
    .unlocked_ioctl = buffer_ioctl,
};

static struct miscdevice buffer_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "lost_buffer",
    .fops = &buffer_operations,
};

static int __init buffer_init(void) {
  return misc_register(&buffer_device);
}

static void __exit buffer_exit(void) {
  misc_deregister(&buffer_device);
  kfree(buffer);
}

module_init(buffer_init);
module_exit(buffer_exit);

MODULE_DESCRIPTION("Example: a buffer that is made twice and lost once");
MODULE_LICENSE("GPL");
