// The values of plain stores, for executions whose trace is kept (Channel::keeps_values).
//
// The compiler reports a plain store before the program makes it, so its record cannot hold the value yet.
// The runtime reads the value when the same agent reaches its next access, event or stop, since no other
// agent has run in between. One case needs care: the compiler reports both the store and the load of a copied
// struct before the copy. So a load does not prove that the previous store was made. The report after that
// load does, and so does a changed value.
#include <errno.h>

#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

uint64_t end_of(const Record& record) {
  return record.object + record.size;
}
bool is_plain(const Record& record, OpKind op) {
  return record.what == Record::What::Happened && record.op == op;
}

// The program may have unmapped the memory since. The kernel copies the set before it rejects the first
// argument, so it tells readable memory (EINVAL) from other memory (EFAULT) and changes nothing.
bool is_readable(uint64_t address) {
  constexpr int kInvalidHow = -1;
  const uint64_t word = address & ~uint64_t{7};
  return raw_syscall(SYS_rt_sigprocmask, kInvalidHow, static_cast<long>(word), 0, sizeof word) != -EFAULT;
}

}  // namespace

// All pieces of a large access are reported before it is made.
bool Runtime::reports_range() const {
  return self() != kNoAgent && agents_[self()].in_range;
}

// Called after each record. The newest record shows whether the stores before it were made.
void Runtime::keep_values() {
  const uint32_t newest = channel_->record_count - 1;
  const Record& record = channel_->records[newest];
  const bool in_range = reports_range();
  const bool store = is_plain(record, OpKind::Store);
  const bool may_copy = is_plain(record, OpKind::Load) && !copied_from_;
  if (may_copy) copied_from_ = true;
  if (!in_range && !may_copy) {
    // An atomic operation is reported after it was made.
    if (record.what == Record::What::Happened && is_atomic(record.op) && record.wrote != 0)
      forget_stores(record.object, record.size);
    read_stores(newest, true);
  }
  if (!store) return;
  copied_from_ = false;
  if (first_store_ == kNoAgent) first_store_ = newest;
}

// Reads the values of the stores from first_store_ to record `end`. If it is not certain that they were made,
// only a changed value counts.
void Runtime::read_stores(uint32_t end, bool certain) {
  for (uint32_t i = first_store_; i < end; ++i) {
    Record& record = channel_->records[i];
    if (!is_plain(record, OpKind::Store) || record.text == Record::kForgotten ||
        record.size > sizeof(uint64_t))
      continue;
    if (!is_readable(record.object) || !is_readable(end_of(record) - 1)) continue;
    uint64_t value = 0;
    const auto* bytes = reinterpret_cast<const volatile uint8_t*>(record.object);
    for (uint32_t at = 0; at < record.size; ++at) value |= uint64_t{bytes[at]} << (8 * at);
    if (!certain && value == static_cast<uint64_t>(record.value)) continue;
    record.state = value;
    record.text = Record::kKnown;
  }
  first_store_ = kNoAgent;
}

void Runtime::read_settled_stores() {
  const bool may_copy = next_ == OpKind::Load && !copied_from_;
  read_stores(channel_->record_count, !may_copy && !reports_range());
}

void Runtime::forget_stores(uint64_t address, uint64_t size) {
  for (uint32_t i = first_store_; i < channel_->record_count; ++i) {
    Record& record = channel_->records[i];
    if (is_plain(record, OpKind::Store) && record.object < address + size && address < end_of(record))
      record.text = Record::kForgotten;
  }
}

}  // namespace slalom::preload
