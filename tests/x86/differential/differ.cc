#include "differ.h"

#include "favour.h"
#include "vm/cpu/registers.h"

namespace slalom::vm::diff {

Result<std::unique_ptr<Differ>> Differ::make(uint64_t seed) {
  auto differ = std::make_unique<Differ>();
  differ->seed_ = seed;
  Generator::fill(differ->backgrounds_, seed);
  differ->guest_ = std::make_unique<Guest>(differ->backgrounds_);
  TRY_ASSIGN(differ->native_, Native::make(differ->backgrounds_));
  return differ;
}

Result<Verdict> Differ::check(const Case& one) {
  Outcome& guest = outcomes_[Exchange::kBatch - 1];
  guest_->run(one, guest);
  if (guest.loops) return Verdict{};
  Exchange& exchange = native_->exchange();
  exchange.cases[0] = one;
  TRY(native_->run(1));
  return compare(one, guest, exchange.outcomes[0]);
}

// Features that CPUID does not advertise must be missing, even if the host has them.
bool Differ::is_refused(const Case& one) {
  Outcome& guest = outcomes_[pending_];
  guest_->run(one, guest);
  const bool not_even_read = guest.vector == 14 && (guest.error & 0x10) != 0;
  return guest.ended && guest.state.rip == one.state.rip && (guest.vector == 6 || not_even_read);
}

// Clears everything that does not matter. The kind of the first difference must stay the same.
Result<void> Differ::shrink(Case& one, std::vector<Difference>& differences) {
  const std::string kind = differences[0].what;
  const auto keep_if_same = [&](const Case& smaller) -> Result<void> {
    TRY_ASSIGN(Verdict verdict, check(smaller));
    auto& found = verdict.differences;
    if (found.empty() || found[0].what != kind) return {};
    one = smaller;
    differences = std::move(found);
    return {};
  };
  // First the data: only data that the instruction can access may matter.
  Case smaller = one;
  uint8_t data[kWritable];
  fill_data(one, backgrounds_, data);
  smaller.background = kZeros;
  smaller.patches = 0;
  const auto keep_data = [&](uint64_t address, uint64_t size) {
    const uint64_t start = std::clamp(address, kData, kData + kWritable);
    const uint64_t end = std::clamp(address + size, kData, kData + kWritable);
    if (start >= end || smaller.patches >= smaller.patch.size()) return;
    Patch& patch = smaller.patch[smaller.patches++];
    patch.offset = static_cast<uint16_t>(start - kData);
    patch.size = static_cast<uint16_t>(std::min<uint64_t>(end - start, patch.bytes.size()));
    std::memcpy(patch.bytes.data(), data + patch.offset, patch.size);
  };
  const auto in = decode(one.mode, {one.bytes.data(), one.length});
  if (in)
    for (unsigned i = 0; i < in->info.operand_count; ++i)
      if (in->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
        keep_data(effective_address(one, *in, in->operands[i]),
                  std::max<uint64_t>(in->operands[i].size / 8, 8));
  TRY(keep_if_same(smaller));
  for (unsigned count = one.patches; count-- > 0;) {
    smaller = one;
    smaller.patches = static_cast<uint8_t>(count);
    TRY(keep_if_same(smaller));
  }
  smaller = one;
  smaller.state.rip = kCode + 0x100;
  TRY(keep_if_same(smaller));
  smaller = one;
  smaller.state.flags = 0;
  TRY(keep_if_same(smaller));
  for (unsigned i = 0; i < 16; ++i) {
    smaller = one;
    smaller.state.gpr[i] = 0;
    TRY(keep_if_same(smaller));
  }
  smaller = one;
  smaller.state.floats = {};
  smaller.state.floats.set<uint16_t>(FloatState::kControl, 0x37f);
  smaller.state.floats.set<uint32_t>(FloatState::kMxcsr, 0x1f80);
  TRY(keep_if_same(smaller));
  for (unsigned at = FloatState::kStack; at < FloatState::kXmm + 256; at += 16) {
    smaller = one;
    smaller.state.floats.set<uint64_t>(at, 0);
    smaller.state.floats.set<uint64_t>(at + 8, 0);
    TRY(keep_if_same(smaller));
  }
  return {};
}

Result<void> Differ::flush(unsigned shown, const std::function<void(const Mismatch&)>& report) {
  Exchange& exchange = native_->exchange();
  TRY(native_->run(pending_));
  std::vector<Mismatch> found;
  for (unsigned i = 0; i < pending_; ++i) {
    FormCount& count = counts_[origins_[i].form];
    ++(origins_[i].near ? count.near : count.cases);
    ++total_;
    if (exchange.outcomes[i].vector != 3) ++count.faults;
    auto [differences, vendors] = compare(exchange.cases[i], outcomes_[i], exchange.outcomes[i]);
    vendors_ += vendors;
    if (differences.empty()) continue;
    if (count.mismatches++ < shown)
      found.push_back({origins_[i].form, exchange.cases[i], std::move(differences)});
  }
  pending_ = 0;
  for (Mismatch& one : found) {
    TRY(shrink(one.one, one.differences));
    report(one);
  }
  return {};
}

Result<void> Differ::run(const std::vector<Form>& forms, uint64_t cases, unsigned shown,
                         const std::function<void(const Mismatch&)>& report) {
  counts_.assign(forms.size(), {});
  total_ = vendors_ = 0;
  if (forms.empty()) return {};
  Exchange& exchange = native_->exchange();
  for (uint64_t number = 0; number < cases; ++number) {
    const size_t form = number % forms.size();
    Generator generator(seed_, number);
    Case& one = exchange.cases[pending_];
    // One in sixteen cases is similar to the form, but not the form itself.
    const bool near = number / forms.size() % 16 == 15;
    if (!(near ? generator.mutated(forms[form], one) : generator.make(forms[form], one))) continue;
    const auto in = decode(one.mode, {one.bytes.data(), one.length});
    if (in && comparable(*in) == Comparable::NotPromised) {
      ++counts_[form].near;
      ++total_;
      if (is_refused(one)) continue;
      if (counts_[form].mismatches++ < shown)
        report({form, one, {{"instruction", "is there", "must be undefined"}}});
      continue;
    }
    guest_->run(one, outcomes_[pending_]);
    if (outcomes_[pending_].loops) continue;
    origins_[pending_++] = {form, near};
    if (pending_ == Exchange::kBatch) TRY(flush(shown, report));
  }
  return pending_ > 0 ? flush(shown, report) : Result<void>{};
}

}  // namespace slalom::vm::diff
