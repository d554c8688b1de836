// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A network card's address of six bytes: writing sets it, reading returns it.
//
// The bug, as between eth_commit_mac_addr_change and dev_ifsioc_locked: the address is set under a lock, in
// two stores, and read without it, in two loads. A concurrent read returns the first bytes of one address and
// the last bytes of the other: a card that never existed.
#include <linux/etherdevice.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/uaccess.h>

static DEFINE_MUTEX(card_lock);  // guards the address
static u8 card_address[ETH_ALEN] __aligned(8) = {0x02, 0x11, 0x11, 0x11, 0x11, 0x11};

static ssize_t card_read(struct file* file, char __user* buffer, size_t count, loff_t* position) {
  u8 address[ETH_ALEN] __aligned(8);

  if (count < sizeof(address)) return -EINVAL;
#ifdef FIXED
  mutex_lock(&card_lock);
#endif
  ether_addr_copy(address, card_address);
#ifdef FIXED
  mutex_unlock(&card_lock);
#endif
  if (copy_to_user(buffer, address, sizeof(address))) return -EFAULT;
  return sizeof(address);
}

static ssize_t card_write(struct file* file, const char __user* buffer, size_t count, loff_t* position) {
  u8 address[ETH_ALEN] __aligned(8);

  if (count != sizeof(address)) return -EINVAL;
  if (copy_from_user(address, buffer, sizeof(address))) return -EFAULT;
  if (!is_valid_ether_addr(address)) return -EADDRNOTAVAIL;
  mutex_lock(&card_lock);
  ether_addr_copy(card_address, address);
  mutex_unlock(&card_lock);
  return count;
}

static const struct file_operations card_operations = {
    .owner = THIS_MODULE,
    .read = card_read,
    .write = card_write,
};

static struct miscdevice card_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "torn_read",
    .fops = &card_operations,
};
module_misc_device(card_device);

MODULE_DESCRIPTION("Example: a value of several words that is read without its lock");
MODULE_LICENSE("GPL");
