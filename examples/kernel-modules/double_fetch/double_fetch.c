// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A mailbox that is shared with another party, as a driver shares a ring with its device: the other party
// posts the length of the message in the slot, any length, at any time; reading checks it and returns the
// message.
//
// The bug, as in rht_ptr and many drivers: the length is fetched once for the check and again for the copy. A
// post in between makes the copy go beyond the slot, which the kernel's hardened user copies detect.
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#define MAILBOX_POST _IO('S', 1)  // (length): by the other party, which is not trusted

#define SLOT_BYTES 64

static struct {
  unsigned int length;  // shared with the other party, so no lock can guard it: exchanged and fetched whole
  char* slot;           // of SLOT_BYTES
} mailbox = {.length = 16};

static ssize_t mailbox_read(struct file* file, char __user* buffer, size_t count, loff_t* position) {
  size_t length = READ_ONCE(mailbox.length);

  if (length > SLOT_BYTES) return -EMSGSIZE;
#ifndef FIXED
  length = READ_ONCE(mailbox.length);
#endif
  if (length > count) length = count;
  if (copy_to_user(buffer, mailbox.slot, length)) return -EFAULT;
  return length;
}

static long mailbox_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  if (command != MAILBOX_POST) return -ENOTTY;
  xchg(&mailbox.length, (unsigned int)argument);
  return 0;
}

static const struct file_operations mailbox_operations = {
    .owner = THIS_MODULE,
    .read = mailbox_read,
    .unlocked_ioctl = mailbox_ioctl,
};

static struct miscdevice mailbox_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "double_fetch",
    .fops = &mailbox_operations,
};

static int __init mailbox_init(void) {
  int error;

  mailbox.slot = kzalloc(SLOT_BYTES, GFP_KERNEL);
  if (!mailbox.slot) return -ENOMEM;
  error = misc_register(&mailbox_device);
  if (error) kfree(mailbox.slot);
  return error;
}

static void __exit mailbox_exit(void) {
  misc_deregister(&mailbox_device);
  kfree(mailbox.slot);
}

module_init(mailbox_init);
module_exit(mailbox_exit);

MODULE_DESCRIPTION("Example: a length that is checked, and fetched again");
MODULE_LICENSE("GPL");
