// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Two accounts, each with its lock, and transfers from one to the other.
//
// The bug: a transfer locks the account that it takes from, then the one that it gives to. Two transfers in
// opposite directions each hold the lock that the other one waits for.
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>

#define BANK_TRANSFER _IO('S', 1)  // (from: 0 or 1): one unit, to the other account
#define BANK_BALANCE _IO('S', 2)   // (account) -> its units

struct account {
  struct mutex lock;
  unsigned int units;  // guarded by `lock`
};

static struct account accounts[2] = {
    {.lock = __MUTEX_INITIALIZER(accounts[0].lock), .units = 10},
    {.lock = __MUTEX_INITIALIZER(accounts[1].lock), .units = 10},
};

static noinline long transfer(struct account* from, struct account* to) {
#ifdef FIXED
  struct account *first = &accounts[0], *second = &accounts[1];
#else
  struct account *first = from, *second = to;
#endif
  long error = 0;

  mutex_lock(&first->lock);
  mutex_lock(&second->lock);
  if (from->units > 0) {
    from->units--;
    to->units++;
  } else {
    error = -EDQUOT;
  }
  mutex_unlock(&second->lock);
  mutex_unlock(&first->lock);
  return error;
}

static long balance(struct account* account) {
  long units;

  mutex_lock(&account->lock);
  units = account->units;
  mutex_unlock(&account->lock);
  return units;
}

static long bank_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  if (argument > 1) return -EINVAL;
  switch (command) {
    case BANK_TRANSFER:
      return transfer(&accounts[argument], &accounts[1 - argument]);
    case BANK_BALANCE:
      return balance(&accounts[argument]);
    default:
      return -ENOTTY;
  }
}

static const struct file_operations bank_operations = {
    .owner = THIS_MODULE,
    .unlocked_ioctl = bank_ioctl,
};

static struct miscdevice bank_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "abba",
    .fops = &bank_operations,
};
module_misc_device(bank_device);

MODULE_DESCRIPTION("Example: two locks in two orders");
MODULE_LICENSE("GPL");
