#include "trace/files/trace_codec.h"

#include <bit>

#include "base/hash.h"
#include "trace/files/serialise.h"

namespace slalom {
namespace {

// Remembers the last number seen under a key. Keys that share a slot only make predictions worse.
class Table {
 public:
  uint64_t& operator[](uint64_t key) { return slots_[mix(key) % kSlots]; }

 private:
  static constexpr size_t kSlots = 4096;
  std::vector<uint64_t> slots_ = std::vector<uint64_t>(kSlots);
};

}  // namespace

// The knowledge of the trace so far that reader and writer share. A number is stored as its distance from the
// prediction, modulo 2^64. `predicted` is then set to the number.
struct TracePredictions {
  uint64_t step = 0;
  Table pc;        // by agent: its last pc
  Table address;   // by pc: code tends to touch the same object again, or the next one
  Table value;     // by address: the value last seen there
  Table physical;  // by virtual page: the distance to its physical address
};

namespace {

void encode_near(ByteWriter& out, uint64_t& predicted, uint64_t number) {
  out.i64(static_cast<int64_t>(number - predicted));
  predicted = number;
}

uint64_t decode_near(ByteReader& in, uint64_t& predicted) {
  return predicted += static_cast<uint64_t>(in.i64());
}

constexpr uint64_t page_of(uint64_t address) {
  return address >> 12;
}

// The first byte of an access holds the operation (3 bits), log2 of the size (2), the ring (2) and `wrote`
// (1). kOther announces two more bytes, for an operation or size without a short form. kModifies in the first
// of the two announces a Modify and a size of any length instead of the second byte. kFlagged there announces
// one more byte before these, with the flags of an access (since version 3).
constexpr uint8_t kOther = 7, kModifies = 0x80, kFlagged = 0x40;
enum AccessFlag : uint8_t { kUnordered = 1, kPrivate = 2, kAllAccessFlags = 3 };
static_assert(kOpKinds <= kFlagged);
constexpr uint64_t kFirstShort = static_cast<uint64_t>(OpKind::Load);
constexpr uint64_t kLastShort = static_cast<uint64_t>(OpKind::CompareExchange);

void encode(ByteWriter& out, const Access& access, uint64_t agent, uint64_t& retired,
            TracePredictions& known) {
  const uint64_t tail = access.ring << 5 | access.wrote << 7;
  const int flags = (access.unordered != 0 ? kUnordered : 0) | (access.is_private != 0 ? kPrivate : 0);
  const uint64_t flagged = flags != 0 ? kFlagged : 0;
  if (access.modify_bits != 0 || access.size > 255) {
    out.u8(static_cast<uint8_t>(kOther | tail));
    out.u8(static_cast<uint8_t>(access.op_bits | kModifies | flagged));
    if (flags != 0) out.u8(static_cast<uint8_t>(flags));
    out.u8(static_cast<uint8_t>(access.modify_bits));
    out.u64(access.size);
  } else if (flags == 0 && access.op_bits >= kFirstShort && access.op_bits <= kLastShort &&
             access.size <= 8 && std::has_single_bit(uint64_t{access.size})) {
    const auto log_size = static_cast<uint64_t>(std::countr_zero(uint64_t{access.size}));
    out.u8(static_cast<uint8_t>((access.op_bits - kFirstShort) | log_size << 3 | tail));
  } else {
    out.u8(static_cast<uint8_t>(kOther | tail));
    out.u8(static_cast<uint8_t>(access.op_bits | flagged));
    if (flags != 0) out.u8(static_cast<uint8_t>(flags));
    out.u8(static_cast<uint8_t>(access.size));
  }
  const uint64_t pc = access.pc().raw;
  const uint64_t address = access.address().raw;
  encode_near(out, retired, access.retired);
  encode_near(out, known.pc[agent], pc);
  encode_near(out, known.address[pc], address);
  encode_near(out, known.value[address], access.value);
  encode_near(out, known.physical[page_of(address)], access.physical - address);
}

Access decode_access(ByteReader& in, uint64_t agent, uint64_t& retired, TracePredictions& known) {
  Access access = {};
  const uint8_t head = in.u8();
  if ((head & 7) == kOther) {
    const uint8_t op = in.u8();
    access.op_bits = op & ~(kModifies | kFlagged);
    if (op & kFlagged) {
      const uint8_t flags = in.u8();
      if (flags > kAllAccessFlags) in.fail();
      access.unordered = (flags & kUnordered) != 0;
      access.is_private = (flags & kPrivate) != 0;
    }
    if (op & kModifies) {
      access.modify_bits = in.u8();
      const uint64_t size = in.u64();
      if (size > 0xffff || access.modify_bits > static_cast<uint64_t>(Modify::Other)) in.fail();
      access.size = size;
    } else {
      access.size = in.u8();
    }
  } else {
    access.op_bits = kFirstShort + (head & 7u);
    access.size = 1u << ((head >> 3) & 3u);
    if (access.op_bits > kLastShort) in.fail();
  }
  if (access.op_bits >= kOpKinds) in.fail();
  access.ring = (head >> 5) & 3u;
  access.wrote = head >> 7;
  decode_near(in, retired);
  if (retired > 0xffff) in.fail();
  access.retired = retired;
  // Predictions are updated from the bits that are kept of each number, as the writer's are.
  uint64_t& pc = known.pc[agent];
  access.pc_bits = decode_near(in, pc);
  pc = access.pc().raw;
  uint64_t& address = known.address[pc];
  access.address_bits = decode_near(in, address);
  address = access.address().raw;
  access.value = decode_near(in, known.value[address]);
  uint64_t& distance = known.physical[page_of(address)];
  access.physical = decode_near(in, distance) + address;
  distance = access.physical - address;
  return access;
}

void encode(ByteWriter& out, const BatchHeader& header, std::span<const Access> accesses,
            TracePredictions& known) {
  encode(out, header.agent);
  out.u64(header.thread);
  encode_near(out, known.step, header.first_step.raw);
  out.u64(accesses.size());
  uint64_t retired = 0;
  for (const Access& access : accesses) encode(out, access, header.agent.raw, retired, known);
  known.step += retired;
}

// The optional fields that follow an event.
enum EventField : uint8_t {
  kObject = 1,
  kState = 2,
  kOtherAgent = 4,
  kValue = 8,
  kText = 16,
  kRecognised = 32,
  kAllFields = 63
};

void encode(ByteWriter& out, const Event& event, TracePredictions& known) {
  encode(out, event.agent);
  encode_near(out, known.step, event.step.raw);
  encode_near(out, known.pc[event.agent.raw], event.pc.raw);
  const int fields = (event.object.raw != 0 ? kObject : 0) | (event.state != 0 ? kState : 0) |
                     (event.other ? kOtherAgent : 0) | (event.value != 0 ? kValue : 0) |
                     (!event.text.empty() ? kText : 0) | (event.recognised ? kRecognised : 0);
  out.u8(static_cast<uint8_t>(fields));
  if ((fields & kObject) != 0) encode_near(out, known.address[event.pc.raw], event.object.raw);
  if ((fields & kState) != 0) out.u64(event.state);
  if ((fields & kOtherAgent) != 0) encode(out, event.other);
  if ((fields & kValue) != 0) out.i64(event.value);
  if ((fields & kText) != 0) out.text(event.text);
}

constexpr uint8_t kBatchTag = 0;  // an event's tag is its operation plus one

}  // namespace

TraceEncoder::TraceEncoder() : known_(std::make_unique<TracePredictions>()) {}
TraceEncoder::~TraceEncoder() = default;

void TraceEncoder::accesses(ByteWriter& out, std::span<const Access> accesses, const BatchHeader& header) {
  out.u8(kBatchTag);
  encode(out, header, accesses, *known_);
}

void TraceEncoder::event(ByteWriter& out, const Event& event) {
  out.u8(static_cast<uint8_t>(static_cast<int>(event.op) + 1));
  encode(out, event, *known_);
}

TraceDecoder::TraceDecoder() : known_(std::make_unique<TracePredictions>()) {}
TraceDecoder::~TraceDecoder() = default;

void TraceDecoder::entry(ByteReader& in, EventSink& sink) {
  const uint8_t tag = in.u8();
  if (tag > kOpKinds) in.fail();
  if (!in.ok()) return;
  if (tag == kBatchTag)
    batch(in, sink);
  else
    event(in, static_cast<OpKind>(tag - 1), sink);
}

void TraceDecoder::batch(ByteReader& in, EventSink& sink) {
  BatchHeader header;
  decode(in, header.agent);
  header.thread = in.u64();
  header.first_step.raw = decode_near(in, known_->step);
  accesses_.clear();
  uint64_t retired = 0;
  for (uint64_t left = in.count(); left > 0 && in.ok(); --left)
    accesses_.push_back(decode_access(in, header.agent.raw, retired, *known_));
  known_->step += retired;
  if (in.ok()) sink.on_accesses(accesses_, header);
}

void TraceDecoder::event(ByteReader& in, OpKind op, EventSink& sink) {
  Event event;
  event.op = op;
  decode(in, event.agent);
  event.step.raw = decode_near(in, known_->step);
  event.pc.raw = decode_near(in, known_->pc[event.agent.raw]);
  const uint8_t fields = in.u8();
  if (fields > kAllFields) in.fail();
  if ((fields & kObject) != 0) event.object.raw = decode_near(in, known_->address[event.pc.raw]);
  if ((fields & kState) != 0) event.state = in.u64();
  if ((fields & kOtherAgent) != 0) decode(in, event.other);
  if ((fields & kValue) != 0) event.value = in.i64();
  std::string text;
  if ((fields & kText) != 0) text = in.text();
  event.text = text;
  event.recognised = (fields & kRecognised) != 0;
  if (in.ok()) sink.on_event(event);
}

void encode_trace_end(ByteWriter& out, const Outcome& outcome) {
  encode(out, outcome);
  const auto* deadlock = std::get_if<Deadlocked>(&outcome);
  const auto* limit = std::get_if<LimitReached>(&outcome);
  const auto* abandoned = std::get_if<Abandoned>(&outcome);
  if (deadlock != nullptr) out.text(deadlock->doubt);
  if (limit != nullptr) out.u8(static_cast<uint8_t>(limit->limit));
  if (abandoned != nullptr) out.u8(static_cast<uint8_t>(abandoned->reason));
}

void decode_trace_end(ByteReader& in, Outcome& outcome) {
  decode(in, outcome);
  auto* deadlock = std::get_if<Deadlocked>(&outcome);
  auto* limit = std::get_if<LimitReached>(&outcome);
  auto* abandoned = std::get_if<Abandoned>(&outcome);
  if (deadlock != nullptr) deadlock->doubt = in.text();
  if (limit != nullptr) decode_enum(in, limit->limit, LimitReached::kLimits);
  if (abandoned != nullptr) decode_enum(in, abandoned->reason, Abandoned::kReasons);
}

Result<void> read_old_trace(std::span<const uint8_t> payload, EventSink& sink) {
  ByteReader in(payload);
  Outcome outcome;
  decode(in, outcome);
  TraceDecoder decoder;
  for (uint64_t left = in.count(); left > 0 && in.ok(); --left) decoder.entry(in, sink);
  if (!in.ok() || !in.at_end()) return error("malformed: its contents are no trace; write it again");
  sink.on_end(outcome);
  return {};
}

}  // namespace slalom
