// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A device with a command channel that one caller at a time may use, while others sleep, and a table of
// filters behind a spinlock. Changing a filter notifies the device.
//
// The bug: the change asks for the channel while it holds the spinlock. That works as long as the channel is
// free; if it is taken, the caller sleeps in atomic context: "BUG: scheduling while atomic".
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/wait_bit.h>

#define DEVICE_RESET _IO('S', 1)   // -> how many commands the device has had
#define DEVICE_FILTER _IO('S', 2)  // (filter)

#define CHANNEL_IN_USE 0  // a bit of
static unsigned long device_state;
static unsigned long commands_sent;  // guarded by the channel

static DEFINE_SPINLOCK(filter_lock);
static unsigned long filter;  // guarded by `filter_lock`, with softirqs off: receiving reads it

static inline void take_channel(void) {
  wait_on_bit_lock(&device_state, CHANNEL_IN_USE, TASK_UNINTERRUPTIBLE);
}

static inline void give_channel(void) {
  clear_and_wake_up_bit(CHANNEL_IN_USE, &device_state);
}

static noinline long reset_device(void) {
  unsigned long sent;

  take_channel();
  sent = commands_sent;
  commands_sent = 0;
  give_channel();
  return sent;
}

static noinline long set_filter(unsigned long wanted) {
#ifdef FIXED
  take_channel();
  spin_lock_bh(&filter_lock);
#else
  spin_lock_bh(&filter_lock);
  take_channel();
#endif
  filter = wanted;
  commands_sent++;
#ifdef FIXED
  spin_unlock_bh(&filter_lock);
  give_channel();
#else
  give_channel();
  spin_unlock_bh(&filter_lock);
#endif
  return 0;
}

static long device_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  switch (command) {
    case DEVICE_RESET:
      return reset_device();
    case DEVICE_FILTER:
      return set_filter(argument);
    default:
      return -ENOTTY;
  }
}

static const struct file_operations device_operations = {
    .owner = THIS_MODULE,
    .unlocked_ioctl = device_ioctl,
};

static struct miscdevice device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "sleep_atomic",
    .fops = &device_operations,
};
module_misc_device(device);

MODULE_DESCRIPTION("Example: sleeping in atomic context, on a rare path");
MODULE_LICENSE("GPL");
