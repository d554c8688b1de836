// The place of an operation in the user's own code: its caller, or the nearest caller outside the system's
// libraries and the headers of the C++ library.
#include <unwind.h>

#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

constexpr int kMostDeep = 48;
constexpr int kFramePointer = 6;  // the number of rbp in DWARF

FrameSize& known_frame(Channel& channel, uint64_t pc) {
  return channel.frames[(pc * 0x9e3779b97f4a7c15u >> 40) % kMostFrames];
}

struct Search {
  const Runtime* runtime;
  Channel* channel;
  uint64_t found = 0;
  uint64_t pc = 0, stack = 0, frame_pointer = 0;  // of the previous frame
  int frames = 0;
};

// Returns whether the size of the previous frame may differ between calls: its function allocates on the
// stack, as gomp_team_start() of libgomp does for new threads, and so needs a frame pointer. User code that
// is not optimised has frame pointers, too, in frames of fixed size.
bool may_vary(const Search& search, uint64_t end) {
  return search.frame_pointer >= search.stack && search.frame_pointer < end &&
         !search.runtime->is_user_code(search.pc);
}

_Unwind_Reason_Code visit_frame(_Unwind_Context* context, void* data) {
  auto& search = *static_cast<Search*>(data);
  int before = 0;
  const uint64_t pc = _Unwind_GetIPInfo(context, &before) - (before != 0 ? 0 : 1);
  const uint64_t stack = _Unwind_GetCFA(context);  // its stack pointer at the call of the previous frame
  if (search.pc != 0)
    known_frame(*search.channel, search.pc) =
        may_vary(search, stack) ? FrameSize{} : FrameSize{search.pc, stack - search.stack};
  search.pc = pc;
  search.stack = stack;
  search.frame_pointer = _Unwind_GetGR(context, kFramePointer);
  if (search.runtime->is_user_code(pc) && !search.runtime->is_library_code(pc)) {
    search.found = pc;
    return _URC_END_OF_STACK;
  }
  known_frame(*search.channel, pc) = {pc, 0};  // in case it is the last one
  return ++search.frames < kMostDeep ? _URC_NO_REASON : _URC_END_OF_STACK;
}

bool is_among(const uint64_t* sorted, uint32_t count, uint64_t pc) {
  uint32_t low = 0, high = count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (sorted[middle] < pc)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && sorted[low] == pc;
}

}  // namespace

void Runtime::prepare_places() const {
  Search search{.runtime = this, .channel = channel_};
  _Unwind_Backtrace(visit_frame, &search);
}

bool Runtime::is_user_code(uint64_t pc) const {
  for (uint32_t i = 0; i < channel_->user_count; ++i)
    if (pc >= channel_->user[i].begin && pc < channel_->user[i].end) return true;
  return false;
}

bool Runtime::find_in_library(uint64_t pc) const {
  uint32_t low = 0, high = channel_->wrapper_count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (channel_->wrappers[middle].end <= pc)
      low = middle + 1;
    else
      high = middle;
  }
  const bool inside = low < channel_->wrapper_count && channel_->wrappers[low].begin <= pc;
  if (!inside) known_outside(pc) = pc;
  return inside;
}

bool Runtime::is_named(const NextAccess& access) {
  for (uint32_t i = 0; i < channel_->access_count; ++i)
    if (channel_->accesses[i].matches(Place{access.pc}, access.address, access.size, access.op)) {
      channel_->access_agent = self();
      channel_->access_ops = slot(self()).ops;
      return true;
    }
  return is_among(channel_->places, channel_->place_count, access.pc);
}

bool Runtime::stops_at_atomic(const NextAccess& access) {
  if (channel_->access_count != 0 && is_named(access)) return true;
  return !is_among(channel_->passed, channel_->passed_count, access.pc) || stops_at_access(access) ||
         agents_[self()].yielded || is_disturbed();
}

// Unwinding costs more than all other parts of an operation. But nearly all functions between a given return
// address and the user's code always have frames of the same size, so known_frame() caches the sizes that one
// unwinding has found. The result must not depend on what is cached, since replays begin with more of it:
// frames that may_vary() are never cached.
uint64_t Runtime::place(void* return_address, const void* stack) {
  uint64_t pc = reinterpret_cast<uint64_t>(return_address) - 1;
  if (!controls()) return pc;
  look_for_modules();
  const uint64_t first = pc;
  auto* words = static_cast<const uint64_t*>(stack);
  for (int i = 0; i < kMostDeep; ++i) {
    if (is_user_code(pc) && !is_library_code(pc)) return pc;
    const FrameSize frame = known_frame(*channel_, pc);
    if (words == nullptr || frame.pc != pc) break;
    if (frame.size == 0) return first;
    words += frame.size / sizeof(uint64_t);
    pc = words[-1] - 1;
  }
  Search search{.runtime = this, .channel = channel_};
  _Unwind_Backtrace(visit_frame, &search);
  return search.found != 0 ? search.found : first;
}

}  // namespace slalom::preload
