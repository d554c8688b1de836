// Futexes that programs use directly: waiting on a word, waking and moving the waiting agents, and locks with
// priority inheritance. Not supported: waits that end in such a lock (FUTEX_WAIT_REQUEUE_PI), and FUTEX_FD,
// which kernels no longer have.
#include "preload/sync/futexes.h"

#include <errno.h>
#include <linux/futex.h>

#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/sync/waits.h"

namespace slalom::preload {
namespace {

uint32_t load(const uint32_t* word) {
  return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}
void store(uint32_t* word, uint32_t value) {
  __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}
// Reports an access to a lock's word, because the program also uses the word without a system call.
void tell_word(const uint32_t* word) {
  runtime().tell_access(OpKind::ReadModifyWrite, word, 4, load(word), true);
}

uint32_t own_thread_id() {
  return static_cast<uint32_t>(kPid) + runtime().self();
}

// The word also says whether an agent waits for the lock, so that its owner unlocks it by a system call.
uint32_t waiters_bit(const uint32_t* word) {
  Runtime& rt = runtime();
  for (uint32_t i = 0; i < rt.agent_count(); ++i)
    if (i != rt.self() && !rt.ended(i) && rt.agent(i).need == Need::PiLock && rt.agent(i).object == word)
      return FUTEX_WAITERS;
  return 0;
}

long lock_pi(uint32_t* word, uint64_t deadline, bool waits, uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::TryLock, object_id(word), pc);
  const uint32_t owner = load(word) & FUTEX_TID_MASK;
  rt.tell(OpKind::TryLock, object_id(word), owner == 0 ? 0 : 1, owner == 0 ? 1 : 0);
  if (owner == 0)
    store(word, own_thread_id() | waiters_bit(word));
  else if (waits && owner != own_thread_id())
    store(word, load(word) | FUTEX_WAITERS);
  tell_word(word);
  rt.retire(owner != 0 && !waits);
  if (owner == 0) return 0;
  if (owner == own_thread_id()) return -EDEADLK;
  if (!waits) return -EAGAIN;
  const bool in_time =
      rt.arrive(unless_limited(OpKind::Lock, deadline), object_id(word), pc, Need::PiLock, word, deadline);
  if (!in_time) {
    rt.tell(OpKind::TryLock, object_id(word), 1, 0);
    rt.retire(true);
    return -ETIMEDOUT;
  }
  rt.tell(OpKind::Lock, object_id(word));
  store(word, own_thread_id() | waiters_bit(word));
  tell_word(word);
  rt.retire();
  return 0;
}

long unlock_pi(uint32_t* word, uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::Unlock, object_id(word), pc);
  const bool mine = (load(word) & FUTEX_TID_MASK) == own_thread_id();
  if (mine) {
    rt.tell(OpKind::Unlock, object_id(word), 1);
    store(word, waiters_bit(word));
    tell_word(word);
  } else {
    rt.tell(OpKind::TryLock, object_id(word), 1, 0);
  }
  rt.retire();
  return mine ? 0 : -EPERM;
}

// Does FUTEX_WAKE_OP's change of the second word and its comparison with the old value. Returns false if the
// operation does not exist.
bool change_word(uint32_t* word, uint32_t coded, bool& answer) {
  const auto signed_field = [coded](int shift) {
    const auto bits = static_cast<int>(coded >> shift & 0xfff);
    return bits >= 0x800 ? bits - 0x1000 : bits;
  };
  const bool shifts = (coded >> 28 & FUTEX_OP_OPARG_SHIFT) != 0;
  const int argument = shifts ? 1 << (signed_field(12) & 31) : signed_field(12);
  const auto operand = static_cast<uint32_t>(argument);
  const uint32_t old = load(word);
  switch (coded >> 28 & 7) {
    case FUTEX_OP_SET:
      store(word, operand);
      break;
    case FUTEX_OP_ADD:
      store(word, old + operand);
      break;
    case FUTEX_OP_OR:
      store(word, old | operand);
      break;
    case FUTEX_OP_ANDN:
      store(word, old & ~operand);
      break;
    case FUTEX_OP_XOR:
      store(word, old ^ operand);
      break;
    default:
      return false;
  }
  const auto value = static_cast<int>(old);
  const int other = signed_field(0);
  switch (coded >> 24 & 15) {
    case FUTEX_OP_CMP_EQ:
      answer = value == other;
      return true;
    case FUTEX_OP_CMP_NE:
      answer = value != other;
      return true;
    case FUTEX_OP_CMP_LT:
      answer = value < other;
      return true;
    case FUTEX_OP_CMP_GE:
      answer = value >= other;
      return true;
    case FUTEX_OP_CMP_LE:
      answer = value <= other;
      return true;
    case FUTEX_OP_CMP_GT:
      answer = value > other;
      return true;
    default:
      return false;
  }
}

// One operation: other agents see the change of the second word and the wake-ups at once.
long wake_op(uint32_t* word, uint32_t most, uint32_t* second, uint32_t most_second, uint32_t coded,
             uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::Broadcast, object_id(word), pc);
  bool answer = false;
  if (!change_word(second, coded, answer)) {
    rt.tell(OpKind::Broadcast, object_id(word), 0, 0);
    rt.retire();
    return -ENOSYS;
  }
  rt.tell_access(OpKind::ReadModifyWrite, second, 4, load(second), true);
  uint32_t woken = wake_some(OpKind::Broadcast, word, most);
  if (answer) woken += wake_some(OpKind::Broadcast, second, most_second);
  rt.retire();
  return woken;
}

}  // namespace

long futex(const long (&a)[6], uint64_t pc) {
  auto* word = reinterpret_cast<uint32_t*>(a[0]);
  auto* second = reinterpret_cast<uint32_t*>(a[4]);
  const auto operation = static_cast<int>(a[1]);
  const auto value = static_cast<uint32_t>(a[2]);
  const auto bits = static_cast<uint32_t>(a[5]);
  const clockid_t clock = operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const int command = operation & FUTEX_CMD_MASK;
  uint64_t deadline = kNever;
  for (int timed : {FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI, FUTEX_LOCK_PI2}) {
    const auto* limit = reinterpret_cast<const timespec*>(a[3]);
    if (command != timed || limit == nullptr) continue;
    if (!valid(limit)) return -EINVAL;
    deadline = command == FUTEX_WAIT      ? after(*limit)
               : command == FUTEX_LOCK_PI ? from_clock(CLOCK_REALTIME, *limit)
                                          : from_clock(clock, *limit);
  }
  switch (command) {
    case FUTEX_WAIT:
      return wait_on_word(word, value, deadline, pc);
    case FUTEX_WAIT_BITSET:
      return bits == 0 ? -EINVAL : wait_on_word(word, value, deadline, pc, bits);
    case FUTEX_WAKE:
      return wake_waiters(word, value, pc);
    case FUTEX_WAKE_BITSET:
      return bits == 0 ? -EINVAL : static_cast<long>(wake_waiters(word, value, pc, bits));
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
      if (static_cast<int>(value) < 0 || static_cast<int>(a[3]) < 0) return -EINVAL;
      return move_waiters(word, value, second, static_cast<uint32_t>(a[3]),
                          command == FUTEX_CMP_REQUEUE ? &bits : nullptr, pc);
    case FUTEX_WAKE_OP:
      return wake_op(word, value, second, static_cast<uint32_t>(a[3]), bits, pc);
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
      return lock_pi(word, deadline, true, pc);
    case FUTEX_TRYLOCK_PI:
      return lock_pi(word, kNever, false, pc);
    case FUTEX_UNLOCK_PI:
      return unlock_pi(word, pc);
    default:
      runtime().note_uncontrolled(Uncontrolled::Blocking);
      return raw_syscall(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
}

}  // namespace slalom::preload
