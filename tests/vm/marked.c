// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Two flags without a lock. Both sides of one are marked, only the reader of the other. For test_marked.py.
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

// On separate cache lines, since neighbours would be one report.
static unsigned int known __aligned(64), forgotten __aligned(64);

static noinline void set_known(unsigned int value) {
  WRITE_ONCE(known, value);
}

static noinline unsigned int get_known(void) {
  return READ_ONCE(known);
}

static noinline void set_forgotten(unsigned int value) {
  forgotten = value;
}

static noinline unsigned int get_forgotten(void) {
  return READ_ONCE(forgotten);
}

static long flags_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  if (command == _IO('S', 1)) {
    set_known(argument);
    set_forgotten(argument);
    return 0;
  }
  return get_known() + get_forgotten();
}

static const struct file_operations flags_operations = {.owner = THIS_MODULE, .unlocked_ioctl = flags_ioctl};
static struct miscdevice flags_device = {
    .minor = MISC_DYNAMIC_MINOR, .name = "marked", .fops = &flags_operations};
module_misc_device(flags_device);

MODULE_DESCRIPTION("Test: marked and plain accesses");
MODULE_LICENSE("GPL");
