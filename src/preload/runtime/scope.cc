// Scope: decides whether the search switches threads at the running agent's position. The innermost function
// on the stack that the user has named decides. A call of atomic code is one step of its agent: before its
// first operation there is a choice, as before any other step.
//
// If there was no operation between the return of one call and the start of the next, the runtime sees
// neither. It infers a new call from the agent's position: without a loop, code does not come back to a place
// that it has passed. Where a loop is possible, the runtime assumes the same call. So it never interrupts
// atomic code, at the price of missing a choice.
#include <unwind.h>

#include "preload/runtime/runtime.h"

// The bounds of this library's own code, set by the linker.
extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));
}

namespace slalom::preload {
namespace {

using Kind = ScopedCode::Kind;

constexpr int kMostDeep = 512;

const ScopedCode* find_scoped(const Channel& channel, uint64_t pc) {
  uint32_t low = 0, high = channel.scoped_count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (channel.scoped[middle].end <= pc)
      low = middle + 1;
    else
      high = middle;
  }
  return low < channel.scoped_count && channel.scoped[low].begin <= pc ? &channel.scoped[low] : nullptr;
}

struct Frame {
  uint64_t pc;
  uint64_t stack;  // its stack pointer at the call of the previous frame
  bool called;     // it called the previous frame; false if a signal interrupted it
};

// Frames, innermost first.
struct Stack {
  const Runtime& runtime;
  uint64_t end;  // frames beyond only start threads
  Frame frames[kMostDeep];
  int count = 0;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* data) {
  auto& stack = *static_cast<Stack*>(data);
  int before = 0;
  const uint64_t pc = _Unwind_GetIPInfo(context, &before) - (before != 0 ? 0 : 1);
  const uint64_t here = _Unwind_GetCFA(context);
  if (here >= stack.end) return _URC_END_OF_STACK;
  stack.frames[stack.count++] = {pc, here, before == 0};
  return stack.count < kMostDeep ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// Returns the function that a direct call just before `pc` called. Its frame may be gone, because it ended
// with a jump to another function. nullptr if there is no direct call to the start of scoped code.
const ScopedCode* find_called(const Channel& channel, uint64_t pc) {
  const auto* call = reinterpret_cast<const uint8_t*>(pc + 1) - 5;
  if (call[0] != 0xe8) return nullptr;
  int32_t distance = 0;
  memcpy(&distance, call + 1, sizeof distance);
  const uint64_t target = pc + 1 + static_cast<uint64_t>(int64_t{distance});
  const ScopedCode* code = find_scoped(channel, target);
  return code != nullptr && code->begin == target ? code : nullptr;
}

// The outermost call of atomic code that encloses the agent's position with no scope function inside it.
struct EnclosingAtomic {
  const ScopedCode* code = nullptr;
  int frame = -1;      // its frame, or that of the function that it jumped to
  uint64_t stack = 0;  // stack pointer at its call
  bool in_scope = false;
  bool closed = false;
};

EnclosingAtomic find_enclosing_atomic(const Channel& channel, const Stack& stack) {
  EnclosingAtomic around;
  for (int i = 0; i < stack.count; ++i) {
    const Frame& frame = stack.frames[i];
    const bool user = stack.runtime.is_user_code(frame.pc);
    const ScopedCode* called = i > 0 && frame.called && user ? find_called(channel, frame.pc) : nullptr;
    const ScopedCode* here = find_scoped(channel, frame.pc);
    around.closed = (called != nullptr && called->kind == Kind::Closed) ||
                    (here != nullptr && here->kind == Kind::Closed);
    if (around.closed) break;
    if (called != nullptr && called->kind == Kind::Atomic) {
      if (around.code != called) around.frame = i - 1;
      around.code = called;
      around.stack = frame.stack;
    }
    around.in_scope =
        (called != nullptr && called->kind == Kind::Scope) || (here != nullptr && here->kind == Kind::Scope);
    if (around.in_scope) break;
    if (here != nullptr && here->kind == Kind::Atomic)
      around = {here, i, i + 1 < stack.count ? stack.frames[i + 1].stack : 0, here->in_scope};
    if (around.in_scope) break;
  }
  return around;
}

// Returns whether `now` may belong to the same call as `last`, the previous position.
bool goes_on(const Channel& channel, const AtomicCall& last, const AtomicCall& now) {
  if (last.function != now.function || last.stack != now.stack) return false;
  for (uint32_t i = 0; i < now.frame_count; ++i) {
    const ScopedCode* code = find_scoped(channel, now.frames[i]);
    if (code == nullptr || code->loops) return true;
    const ScopedCode* before = i < last.frame_count ? find_scoped(channel, last.frames[i]) : nullptr;
    // It does not come back from a function that it jumped to.
    if (before == nullptr || before->function != code->function)
      return i != 0 || code->function != now.function;
    if (last.frames[i] != now.frames[i]) return last.frames[i] < now.frames[i];
  }
  return now.frame_count == AtomicCall::kMostFrames || last.frame_count != now.frame_count;
}

bool is_own(uint64_t pc) {
  return pc >= reinterpret_cast<uint64_t>(__ehdr_start) && pc < reinterpret_cast<uint64_t>(etext);
}

}  // namespace

bool Runtime::switches_here() {
  Stack stack{.runtime = *this, .end = object_id(me().base)};
  _Unwind_Backtrace(add_frame, &stack);
  const EnclosingAtomic around = find_enclosing_atomic(*channel_, stack);
  if (around.closed) return false;
  AtomicCall now;
  if (around.code != nullptr) {
    now.stack = around.stack;
    now.function = around.code->function;
    for (int i = around.frame; i >= 0 && now.frame_count < AtomicCall::kMostFrames; --i) {
      if (is_own(stack.frames[i].pc)) break;
      now.frames[now.frame_count++] = stack.frames[i].pc;
    }
  }
  const bool new_step = around.code == nullptr || !goes_on(*channel_, me().atomic_call, now);
  me().atomic_call = now;
  return new_step && (around.in_scope || channel_->switches_outside != 0);
}

}  // namespace slalom::preload
