// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A counter with a part per CPU: adding is local, and now and then every CPU is interrupted to fold its part
// into the total.
//
// The bug: adding takes the lock that the interrupt handler also takes, but leaves interrupts on. If the
// interrupt comes while its CPU holds the lock, the handler waits for the code that it has interrupted.
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#define COUNTER_ADD _IO('S', 1)   // (number)
#define COUNTER_FOLD _IO('S', 2)  // all parts into the total
#define COUNTER_READ _IO('S', 3)  // -> the total

#define STRIPES 8

static struct {
  spinlock_t lock;  // guards what follows; also taken in interrupts
  unsigned long total;
  unsigned long parts[STRIPES];  // one per CPU, for the first CPUs
} counter = {.lock = __SPIN_LOCK_UNLOCKED(counter.lock)};

// The part of this CPU, which does not change while preemption is off.
static unsigned long* part_here(void) {
  const unsigned int cpu = smp_processor_id();

  return &counter.parts[cpu % STRIPES];
}

static noinline long add_here(unsigned long number) {
#ifdef FIXED
  unsigned long flags;

  spin_lock_irqsave(&counter.lock, flags);
#else
  spin_lock(&counter.lock);
#endif
  *part_here() += number;
#ifdef FIXED
  spin_unlock_irqrestore(&counter.lock, flags);
#else
  spin_unlock(&counter.lock);
#endif
  return 0;
}

// In an interrupt, or with interrupts off.
static void fold_here(void* unused) {
  unsigned long* part = part_here();

  spin_lock(&counter.lock);
  counter.total += *part;
  *part = 0;
  spin_unlock(&counter.lock);
}

static long read_total(void) {
  unsigned long flags, total;

  spin_lock_irqsave(&counter.lock, flags);
  total = counter.total;
  spin_unlock_irqrestore(&counter.lock, flags);
  return total;
}

static long counter_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  switch (command) {
    case COUNTER_ADD:
      return add_here(argument);
    case COUNTER_FOLD:
      on_each_cpu(fold_here, NULL, 1);
      return 0;
    case COUNTER_READ:
      return read_total();
    default:
      return -ENOTTY;
  }
}

static const struct file_operations counter_operations = {
    .owner = THIS_MODULE,
    .unlocked_ioctl = counter_ioctl,
};

static struct miscdevice counter_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "irq_context",
    .fops = &counter_operations,
};
module_misc_device(counter_device);

MODULE_DESCRIPTION("Example: a lock of an interrupt handler, taken with interrupts on");
MODULE_LICENSE("GPL");
