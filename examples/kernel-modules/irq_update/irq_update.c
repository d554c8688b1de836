// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A counter with a part per CPU, which no lock guards: a CPU adds to its own part, and now and then every CPU
// is interrupted to move its part to the total.
//
// The bug: adding reads the part, checks whether there is room, and stores the sum, with interrupts on. If
// the interrupt comes in between, the part that was just moved is stored once more, and counts twice.
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/irqflags.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/smp.h>

#define COUNTER_ADD _IO('S', 1)   // (number)
#define COUNTER_FOLD _IO('S', 2)  // all parts into the total
#define COUNTER_READ _IO('S', 3)  // -> the total

#define STRIPES 8
#define MOST 1000

static struct {
  atomic_long_t total;
  unsigned long parts[STRIPES];  // one per CPU, for the first CPUs
} counter;

// The part of this CPU, which does not change while preemption is off.
static unsigned long* part_here(void) {
  return &counter.parts[smp_processor_id() % STRIPES];
}

static noinline long add_here(unsigned long number) {
  unsigned long* part;
  unsigned long sum;
#ifdef FIXED
  unsigned long flags;

  local_irq_save(flags);
#else
  preempt_disable();
#endif
  part = part_here();
  sum = *part + number;
  if (sum <= MOST) *part = sum;
#ifdef FIXED
  local_irq_restore(flags);
#else
  preempt_enable();
#endif
  return sum <= MOST ? 0 : -ENOSPC;
}

// In an interrupt, or with interrupts off.
static void fold_here(void* unused) {
  unsigned long* part = part_here();

  atomic_long_add(*part, &counter.total);
  *part = 0;
}

static long counter_ioctl(struct file* file, unsigned int command, unsigned long argument) {
  switch (command) {
    case COUNTER_ADD:
      return add_here(argument);
    case COUNTER_FOLD:
      on_each_cpu(fold_here, NULL, 1);
      return 0;
    case COUNTER_READ:
      return atomic_long_read(&counter.total);
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
    .name = "irq_update",
    .fops = &counter_operations,
};
module_misc_device(counter_device);

MODULE_DESCRIPTION("Example: an update that an interrupt falls into");
MODULE_LICENSE("GPL");
