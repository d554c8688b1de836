// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A named pipe that exists while it is open: opening it for reading and writing creates it, other opens join
// it, and the last close removes it.
//
// The bug, as in the kernel's pipes (opening /proc/PID/fd/N while the last user closes): an open finds the
// name, and takes the inode's lock. In between, the last close frees the pipe. The open then follows a
// pointer that is NULL. Every access is under its lock, so there is no data race: the code only assumes that
// name and pipe change together.
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

struct pipe {
  unsigned int users;
};

struct pipe_inode {
  struct mutex lock;  // guards what follows
  struct pipe* pipe;  // NULL if it is not open
};

static struct pipe_inode inode = {.lock = __MUTEX_INITIALIZER(inode.lock)};

static DEFINE_SPINLOCK(directory_lock);     // guards `directory_entry`; taken inside an inode's lock
static struct pipe_inode* directory_entry;  // the inode of the name; NULL if the name does not exist

static struct pipe_inode* look_up(void) {
  struct pipe_inode* found;

  spin_lock(&directory_lock);
  found = directory_entry;
  spin_unlock(&directory_lock);
  return found;
}

static void set_name(struct pipe_inode* target) {
  spin_lock(&directory_lock);
  directory_entry = target;
  spin_unlock(&directory_lock);
}

static noinline int create_pipe(void) {
  int error = 0;

  mutex_lock(&inode.lock);
  if (!inode.pipe) {
    inode.pipe = kzalloc(sizeof(*inode.pipe), GFP_KERNEL);
    if (!inode.pipe) {
      error = -ENOMEM;
      goto out;
    }
    set_name(&inode);
  }
  inode.pipe->users++;
out:
  mutex_unlock(&inode.lock);
  return error;
}

static noinline int join_pipe(void) {
  struct pipe_inode* found = look_up();
  int error = 0;

  if (!found) return -ENXIO;
  mutex_lock(&found->lock);
#ifdef FIXED
  if (!found->pipe) {  // the last user has closed it since
    error = -ENXIO;
    goto out;
  }
#endif
  found->pipe->users++;
#ifdef FIXED
out:
#endif
  mutex_unlock(&found->lock);
  return error;
}

static int pipe_open(struct inode* device, struct file* file) {
  return (file->f_flags & O_ACCMODE) == O_RDWR ? create_pipe() : join_pipe();
}

static int pipe_release(struct inode* device, struct file* file) {
  mutex_lock(&inode.lock);
  if (--inode.pipe->users == 0) {
    set_name(NULL);
    kfree(inode.pipe);
    inode.pipe = NULL;
  }
  mutex_unlock(&inode.lock);
  return 0;
}

static const struct file_operations pipe_operations = {
    .owner = THIS_MODULE,
    .open = pipe_open,
    .release = pipe_release,
};

static struct miscdevice pipe_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "pipe_open",
    .fops = &pipe_operations,
};
module_misc_device(pipe_device);

MODULE_DESCRIPTION("Example: open against the last close of a pipe");
MODULE_LICENSE("GPL");
