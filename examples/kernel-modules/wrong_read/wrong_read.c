// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A file of one page: writes append to it, reads return its contents. As in a page cache, the page and the
// size of the file have a lock each, so that asking for the size need not wait for the page.
//
// The bug, as in file systems whose read gets the size last: a read copies the page, still empty, then a
// write fills the page and grows the file, then the read takes the new size. It returns zeros that no one
// ever wrote. There is no data race.
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#define PAGE_BYTES 64

static DEFINE_MUTEX(append_lock);  // one write at a time

static DEFINE_SPINLOCK(page_lock);
static char page[PAGE_BYTES];

static DEFINE_SPINLOCK(size_lock);
static size_t file_size;  // grows after the page has the bytes

static size_t get_size(void) {
  size_t size;

  spin_lock(&size_lock);
  size = file_size;
  spin_unlock(&size_lock);
  return size;
}

static void set_size(size_t size) {
  spin_lock(&size_lock);
  file_size = size;
  spin_unlock(&size_lock);
}

static ssize_t file_read(struct file* file, char __user* buffer, size_t count, loff_t* position) {
  char copy[PAGE_BYTES];
  size_t size;

#ifdef FIXED
  size = get_size();  // before the page: what this size promises is there
#endif
  spin_lock(&page_lock);
  memcpy(copy, page, sizeof(copy));
  spin_unlock(&page_lock);
#ifndef FIXED
  size = get_size();
#endif
  return simple_read_from_buffer(buffer, count, position, copy, size);
}

static ssize_t file_write(struct file* file, const char __user* buffer, size_t count, loff_t* position) {
  char copy[PAGE_BYTES];
  size_t end;

  if (count > sizeof(copy)) return -ENOSPC;
  if (copy_from_user(copy, buffer, count)) return -EFAULT;
  mutex_lock(&append_lock);
  end = get_size();
  if (count > PAGE_BYTES - end) {
    mutex_unlock(&append_lock);
    return -ENOSPC;
  }
  spin_lock(&page_lock);
  memcpy(page + end, copy, count);
  spin_unlock(&page_lock);
  set_size(end + count);
  mutex_unlock(&append_lock);
  return count;
}

static const struct file_operations file_operations = {
    .owner = THIS_MODULE,
    .read = file_read,
    .write = file_write,
};

static struct miscdevice file_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "wrong_read",
    .fops = &file_operations,
};
module_misc_device(file_device);

MODULE_DESCRIPTION("Example: a read that gives bytes which were never there");
MODULE_LICENSE("GPL");
