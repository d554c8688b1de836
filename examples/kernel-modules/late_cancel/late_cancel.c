// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A queue with room for one request, and a kernel thread that handles and frees it, in the manner of drivers
// that hand slow work to a thread of their own. A request that is still in the queue can be cancelled: the
// thread then only frees it.
//
// The bug, as between many a cancellation and completion: cancelling finds the request under the queue's
// lock, and marks it after releasing that lock. The thread may take, handle and free it in between, and the
// mark then goes to free memory. The mark is atomic, so there is no data race, and nothing crashes.
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define REQUEST_SUBMIT _IO('S', 1)
#define REQUEST_CANCEL _IO('S', 2)

struct request {
  atomic_t cancelled;
};

static DEFINE_SPINLOCK(queue_lock);  // guards `queued`
static struct request* queued;       // NULL if there is room
static struct task_struct* thread;
static atomic_t handled;

static long submit(void) {
  struct request* request = kzalloc(sizeof(*request), GFP_KERNEL);
  long result = -EBUSY;

  if (!request) return -ENOMEM;
  spin_lock(&queue_lock);
  if (!queued) {
    queued = request;
    request = NULL;
    result = 0;
  }
  spin_unlock(&queue_lock);
  kfree(request);
  wake_up_process(thread);
  return result;
}

static noinline long cancel(void) {
  struct request* request;

  spin_lock(&queue_lock);
  request = queued;
#ifdef FIXED
  if (request) atomic_inc(&request->cancelled);
#endif
  spin_unlock(&queue_lock);
  if (!request) return -ENOENT;
#ifndef FIXED
  atomic_inc(&request->cancelled);
#endif
  return 0;
}

static int handle_requests(void* unused) {
  struct request* request;

  for (;;) {
    set_current_state(TASK_INTERRUPTIBLE);
    if (kthread_should_stop()) break;
    spin_lock(&queue_lock);
    request = queued;
    queued = NULL;
    spin_unlock(&queue_lock);
    if (!request) {
      schedule();
      continue;
    }
    __set_current_state(TASK_RUNNING);
    if (!atomic_read(&request->cancelled)) atomic_inc(&handled);
    kfree(request);
  }
  __set_current_state(TASK_RUNNING);
  return 0;
}

static long queue_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  switch (command) {
    case REQUEST_SUBMIT:
      return submit();
    case REQUEST_CANCEL:
      return cancel();
    default:
      return -ENOTTY;
  }
}

static const struct file_operations queue_operations = {
    .owner = THIS_MODULE,
    .unlocked_ioctl = queue_ioctl,
};

static struct miscdevice queue_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "late_cancel",
    .fops = &queue_operations,
};

static int __init queue_init(void) {
  int trouble;

  thread = kthread_run(handle_requests, NULL, "late_cancel");
  if (IS_ERR(thread)) return PTR_ERR(thread);
  trouble = misc_register(&queue_device);
  if (trouble) kthread_stop(thread);
  return trouble;
}

static void __exit queue_exit(void) {
  misc_deregister(&queue_device);
  kthread_stop(thread);
  kfree(queued);
}

module_init(queue_init);
module_exit(queue_exit);

MODULE_DESCRIPTION("Example: cancelling what a kernel thread has just freed");
MODULE_LICENSE("GPL");
