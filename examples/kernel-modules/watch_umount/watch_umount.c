// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Watches on a volume, in the manner of inotify: a watch is added and removed by its number, and unmounting
// the volume removes the rest.
//
// The bug, as in inotify against umount: removing a watch finds it by its number, releases the lock, and
// takes the lock again to unlink it. An unmount in between has already unlinked and freed it: a use after
// free, which the kernel's list checks detect. As long as the watch lives, every access is under the lock.
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define VOLUME_ADD_WATCH _IO('S', 1)     // -> its number
#define VOLUME_REMOVE_WATCH _IO('S', 2)  // (number)
#define VOLUME_UNMOUNT _IO('S', 3)

struct watch {
  struct list_head entry;
  unsigned int number;
};

static struct {
  spinlock_t lock;  // guards what follows, and every watch
  bool mounted;
  unsigned int last_number;
  struct list_head watches;
} volume = {
    .lock = __SPIN_LOCK_UNLOCKED(volume.lock),
    .mounted = true,
    .watches = LIST_HEAD_INIT(volume.watches),
};

static long add_watch(void) {
  struct watch* watch = kzalloc(sizeof(*watch), GFP_KERNEL);
  long result = -ENODEV;

  if (!watch) return -ENOMEM;
  spin_lock(&volume.lock);
  if (volume.mounted) {
    result = watch->number = ++volume.last_number;
    list_add_tail(&watch->entry, &volume.watches);
    watch = NULL;
  }
  spin_unlock(&volume.lock);
  kfree(watch);
  return result;
}

// The caller holds the lock.
static struct watch* find_watch(unsigned long number) {
  struct watch* watch;

  list_for_each_entry(watch, &volume.watches, entry) {
    if (watch->number == number) return watch;
  }
  return NULL;
}

static noinline long remove_watch(unsigned long number) {
  struct watch* watch;

  spin_lock(&volume.lock);
  watch = find_watch(number);
#ifndef FIXED
  spin_unlock(&volume.lock);
  if (!watch) return -EINVAL;
  spin_lock(&volume.lock);
#endif
  if (watch) list_del(&watch->entry);
  spin_unlock(&volume.lock);
  if (!watch) return -EINVAL;
  kfree(watch);
  return 0;
}

static noinline long unmount(void) {
  struct watch *watch, *next;

  spin_lock(&volume.lock);
  volume.mounted = false;
  list_for_each_entry_safe(watch, next, &volume.watches, entry) {
    list_del(&watch->entry);
    kfree(watch);
  }
  spin_unlock(&volume.lock);
  return 0;
}

static long volume_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  switch (command) {
    case VOLUME_ADD_WATCH:
      return add_watch();
    case VOLUME_REMOVE_WATCH:
      return remove_watch(argument);
    case VOLUME_UNMOUNT:
      return unmount();
    default:
      return -ENOTTY;
  }
}

static const struct file_operations volume_operations = {
    .owner = THIS_MODULE,
    .unlocked_ioctl = volume_ioctl,
};

static struct miscdevice volume_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "watch_umount",
    .fops = &volume_operations,
};

static int __init volume_init(void) {
  return misc_register(&volume_device);
}

static void __exit volume_exit(void) {
  misc_deregister(&volume_device);
  unmount();
}

module_init(volume_init);
module_exit(volume_exit);

MODULE_DESCRIPTION("Example: removing a watch against unmounting its volume");
MODULE_LICENSE("GPL");
