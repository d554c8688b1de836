#include "trace/op.h"

#include <array>

namespace slalom {
namespace {

struct OpFacts {
  std::string_view name;
  Effect effect;
};

constexpr std::array<OpFacts, kOpKinds> kFacts = {{
    {"none", Effect::None},
    {"load", Effect::Read},
    {"store", Effect::Write},
    {"atomic load", Effect::Read},
    {"atomic store", Effect::Write},
    {"read-modify-write", Effect::Write},
    {"compare-exchange", Effect::Write},
    {"lock", Effect::Write},
    {"trylock", Effect::Write},
    {"unlock", Effect::Write},
    {"read lock", Effect::Read},
    {"read unlock", Effect::Read},
    {"write lock", Effect::Write},
    {"write unlock", Effect::Write},
    {"wait", Effect::Write},
    {"signal", Effect::Write},
    {"broadcast", Effect::Write},
    {"semaphore wait", Effect::Write},
    {"semaphore post", Effect::Write},
    {"barrier", Effect::Write},
    {"spawn", Effect::Write},
    {"join", Effect::Read},
    {"exit", Effect::Write},
    {"wake", Effect::None},
    {"yield", Effect::None},
    {"choose", Effect::None},
    {"alloc", Effect::None},
    {"free", Effect::Write},
    {"heap use", Effect::Read},
    {"interrupt enter", Effect::Write},
    {"interrupt exit", Effect::Write},
    {"interrupt mask", Effect::Write},
    {"interrupt unmask", Effect::Write},
    {"interrupt raise", Effect::Write},
    {"cpu use", Effect::Read},
    {"timer arm", Effect::Write},
    {"timer cancel", Effect::Write},
    {"timer fire", Effect::Write},
    {"note", Effect::None},
    {"fail", Effect::None},
    {"interrupt take", Effect::Write},
    {"go on", Effect::None},
    {"call", Effect::None},
    {"return", Effect::None},
    {"system call", Effect::None},
    {"system call returns", Effect::None},
    {"thread switch", Effect::None},
    {"console", Effect::None},
    {"release", Effect::Write},
    {"acquire", Effect::Read},
    {"claim", Effect::Write},
}};

}  // namespace

std::string_view name(OpKind kind) {
  return kFacts[static_cast<size_t>(kind)].name;
}
Effect effect(OpKind kind) {
  return kFacts[static_cast<size_t>(kind)].effect;
}

bool may_block(OpKind kind) {
  switch (kind) {
    case OpKind::Lock:
    case OpKind::ReadLock:
    case OpKind::WriteLock:
    case OpKind::SemWait:
    case OpKind::Join:
    case OpKind::IrqEnter:
    case OpKind::CpuUse:
    case OpKind::TimerFire:
    case OpKind::IrqTake:
    case OpKind::Acquire:
      return true;
    default:
      return false;
  }
}

bool can_run(OpKind kind, uint64_t state) {
  switch (kind) {
    case OpKind::Lock:
      return state == 0;
    case OpKind::ReadLock:
      return (state & 1) == 0;
    case OpKind::WriteLock:
      return state == 0;
    case OpKind::SemWait:
    case OpKind::IrqTake:
      return state > 0;
    case OpKind::Join:
      return state == 1;
    case OpKind::IrqEnter:
    case OpKind::Acquire:
      return state == 0;
    case OpKind::CpuUse:
      return state != 2;
    case OpKind::TimerFire:
      return state == 1;
    default:
      return true;
  }
}

uint64_t state_after(OpKind kind, uint64_t state) {
  switch (kind) {
    case OpKind::Lock:
    case OpKind::TryLock:
      return 1;
    case OpKind::Unlock:
      return 0;
    case OpKind::ReadLock:
      return state + 2;
    case OpKind::ReadUnlock:
      return state - 2;
    case OpKind::WriteLock:
      return 1;
    case OpKind::WriteUnlock:
      return 0;
    case OpKind::SemWait:
    case OpKind::IrqTake:
      return state - 1;
    case OpKind::SemPost:
      return state + 1;
    case OpKind::Spawn:
      return 0;
    case OpKind::Exit:
      return 1;
    case OpKind::IrqEnter:
      return 2;
    case OpKind::IrqExit:
    case OpKind::Release:
      return 0;
    case OpKind::IrqMask:
      return 1;
    case OpKind::IrqUnmask:
      return 0;
    case OpKind::IrqRaise:
      return state + 1;
    case OpKind::TimerArm:
      return 1;
    case OpKind::TimerCancel:
      return 0;
    case OpKind::TimerFire:
      return 2;
    default:
      return state;
  }
}

}  // namespace slalom
