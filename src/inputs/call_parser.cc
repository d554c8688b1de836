// parse_calls(): parses the readable form to a CallProgram.
//
//   line   : [name =] call(value, ...) | name = value | store(type, place, value) | choose(type, place,
//   number)
//            | poke(address, place, size) | peek(address, place, size)
//   value  : numbers, constants and names with | ^ & << >> + - * ~ and brackets, "text", {type value, ...},
//            buf(size), &name or &name(size), name[i], name.type[i], load(type, place), sizeof(name),
//            choose(number), sockaddr_in(...), NAME{field: value, ...} and other words of call_words.h
//   also   : send(fd, value) | ring = io_uring(entries) | submit(ring, value, ...)
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>

#include "inputs/call_words.h"

namespace slalom {
namespace {

class Parser : private CallWords {
 public:
  using CallWords::CallWords;

  Result<NamedCalls> parse() {
    while (peek().kind != CallToken::Kind::End) {
      if (peek().kind == CallToken::Kind::EndOfLine) {
        ++at_;
        continue;
      }
      TRY(statement());
      const CallToken& after = peek();
      if (after.kind != CallToken::Kind::EndOfLine && after.kind != CallToken::Kind::End)
        return wrong(after, "unexpected {} after the call: each call has a line of its own", shown(after));
    }
    return NamedCalls{std::move(program_), std::move(names_), std::move(types_)};
  }

 private:
  Result<void> statement() {
    const CallToken& first = peek();
    if (first.kind != CallToken::Kind::Name)
      return wrong(first, "expected a call such as fd = open(\"/tmp/a\", O_RDWR), not {}", shown(first));
    std::string name;
    if (is_sign("=", 1)) {
      name = first.text;
      TRY(check_name(first));
      at_ += 2;
    }
    const CallToken& word = peek();
    if (word.kind == CallToken::Kind::Name && is_sign("(", 1)) {
      if (word.text == "send") return send(name, first);
      if (word.text == "io_uring" && !name.empty()) return io_uring(name, first);
      if (word.text == "submit") return submit(name, first);
      if (!is_function(word.text) && !is_word(word.text)) return call(name, first);
    }
    if (name.empty() && word.text == "store" && is_sign("(", 1)) return store();
    if (name.empty() && word.text == "choose" && is_sign("(", 1)) return choose();
    if (name.empty() && (word.text == "poke" || word.text == "peek") && is_sign("(", 1)) return copy();
    if (name.empty())
      return wrong(word, "expected a call such as read(fd, buf(16), 16), not {}", shown(word));
    if (is_sign("{", 1)) types_[name] = word.text;
    TRY_ASSIGN(const Operand operand, value());
    names_[name] = operand;
    return {};
  }

  Result<void> call(const std::string& name, const CallToken& first) {
    const CallToken word = peek();
    CallStep step;
    if (const auto number = system_call_number(word.text))
      step.number = *number;
    else
      return wrong(word, "unknown system call `{}`{}", word.text, similar_system_calls(word.text));
    at_ += 2;
    while (!is_sign(")")) {
      if (step.size > 0) TRY(expect_sign(",", "between two arguments"));
      if (step.size == CallStep::kOperands) return wrong(peek(), "a system call has at most six arguments");
      TRY_ASSIGN(step.operands[step.size], value());
      ++step.size;
    }
    ++at_;
    return make(step, name, first);
  }

  // Adds a call whose text begins with `first` and ends before the next token. `what`: the name of a call
  // that the text only implies.
  Result<void> make(const CallStep& step, const std::string& name, const CallToken& first,
                    std::string_view what = "") {
    TRY(add(step, first));
    std::string source(text_.substr(first.begin, tokens_[at_ - 1].end - first.begin));
    if (!what.empty()) source += fmt::format(": {}", what);
    program_.sources.push_back({.text = std::move(source), .line = first.line});
    if (!name.empty()) names_[name] = {.kind = Operand::Kind::Result, .value = calls_};
    ++calls_;
    return {};
  }
  template <typename... Operands>
  static CallStep call_of(uint32_t number, const Operands&... operands) {
    return {.size = sizeof...(operands), .number = number, .operands = {operands...}};
  }
  static Operand constant(uint64_t value) { return {.value = value}; }

  // send(fd, m): sendto() of all of m.
  Result<void> send(const std::string& name, const CallToken& first) {
    at_ += 2;
    TRY_ASSIGN(const Operand socket, value());
    TRY(expect_sign(",", "after the descriptor"));
    const CallToken token = peek();
    TRY_ASSIGN(const Operand message, value());
    TRY(expect_sign(")", "after the message"));
    const std::optional<uint32_t> size = object_size(message);
    if (!size)
      return wrong(token, "expected a text, a structure or a message such as newlink(\"d0\", \"dummy\")");
    return make(call_of(SYS_sendto, socket, message, constant(*size), constant(0), constant(0), constant(0)),
                name, first);
  }

  // --- io_uring ---

  // ring = io_uring(entries): makes a ring and maps it. ring.rings and ring.sqes are the mappings,
  // ring.params the parameters that the kernel has filled in.
  Result<void> io_uring(const std::string& name, const CallToken& first) {
    at_ += 2;
    const CallToken token = peek();
    TRY_ASSIGN(const Operand entries, value());
    Operand flags;
    if (take_sign(",")) {
      TRY_ASSIGN(flags, value());
    }
    TRY(expect_sign(")", "after the number of entries"));
    constexpr uint64_t kMostEntries = 128;
    if (!is_constant(entries) || entries.value < 1 || entries.value > kMostEntries || !is_constant(flags))
      return wrong(token, "io_uring() needs a number of entries from 1 to {}", kMostEntries);
    Bytes given;
    given.bytes.resize(sizeof(io_uring_params));
    TRY(put(given, offsetof(io_uring_params, flags), 4, false, token, flags));
    TRY_ASSIGN(const Operand params, placed(token, given));
    names_[name + ".params"] = params;
    TRY(make(call_of(SYS_io_uring_setup, entries, params), name, first, "io_uring_setup"));
    const auto map = [&](uint64_t size, uint64_t where) {
      return call_of(SYS_mmap, constant(0), constant(size), constant(PROT_READ | PROT_WRITE),
                     constant(MAP_SHARED | MAP_POPULATE), names_[name], constant(where));
    };
    // More than the kernel needs: it maps what is there.
    TRY(make(map(4096, IORING_OFF_SQ_RING), name + ".rings", first, "mmap"));
    TRY(make(map((entries.value * sizeof(io_uring_sqe) + 4095) / 4096 * 4096, IORING_OFF_SQES),
             name + ".sqes", first, "mmap"));
    Bytes order;  // entry i of the array of the ring names request i
    uint64_t rounded = 1;
    while (rounded < entries.value) rounded *= 2;
    for (uint64_t i = 0; i < rounded; ++i) TRY(put(order, 4 * i, 4, false, token, constant(i)));
    names_[name + ".tail"] = constant(0);
    names_[name + ".entries"] = constant(rounded);
    TRY_ASSIGN(const Operand array, placed(token, order));
    return add_copy(token, CallStep::Kind::Write,
                    {names_[name + ".rings"], ring_offset(params, offsetof(io_sqring_offsets, array))}, array,
                    order.bytes.size());
  }
  static Operand ring_offset(const Operand& params, size_t field) {
    Operand offset = params;
    offset.kind = Operand::Kind::Load;
    offset.size = 4;
    offset.value += offsetof(io_uring_params, sq_off) + field;
    return offset;
  }

  // submit(ring, request, ...): writes the requests into the ring and submits them with io_uring_enter().
  Result<void> submit(const std::string& name, const CallToken& first) {
    at_ += 2;
    const CallToken token = peek();
    ++at_;
    const std::string ring = token.text;
    if (!names_.contains(ring + ".sqes"))
      return wrong(token, "`{}` is no ring: make one with {} = io_uring(8)", ring, ring);
    uint64_t tail = names_[ring + ".tail"].value;  // of the requests that were submitted before
    const uint64_t before = tail, entries = names_[ring + ".entries"].value;
    while (!is_sign(")")) {
      TRY(expect_sign(",", "before a request"));
      const CallToken where = peek();
      TRY_ASSIGN(const std::optional<Bytes> request, bytes_word());
      if (!request || request->bytes.size() != sizeof(io_uring_sqe))
        return wrong(where, "expected a request such as io_uring_sqe{{opcode: IORING_OP_NOP}}");
      TRY_ASSIGN(const Operand place, placed(where, *request));
      TRY(add_copy(where, CallStep::Kind::Write,
                   {names_[ring + ".sqes"], constant(tail++ % entries * sizeof(io_uring_sqe))}, place,
                   sizeof(io_uring_sqe)));
    }
    ++at_;
    if (tail == before)
      return wrong(token, "submit() needs a request such as io_uring_sqe{{opcode: IORING_OP_NOP}}");
    names_[ring + ".tail"] = constant(tail);
    Bytes new_tail;
    TRY(put(new_tail, 0, 4, false, token, constant(tail)));
    TRY_ASSIGN(const Operand place, placed(token, new_tail));
    TRY(add_copy(
        token, CallStep::Kind::Write,
        {names_[ring + ".rings"], ring_offset(names_[ring + ".params"], offsetof(io_sqring_offsets, tail))},
        place, 4));
    return make(call_of(SYS_io_uring_enter, names_[ring], constant(tail - before), constant(0), constant(0),
                        constant(0), constant(0)),
                name, first);
  }

  Result<void> store() {
    const CallToken word = peek();
    at_ += 2;
    TRY_ASSIGN(const FieldType* type, little_type());
    TRY(expect_sign(",", "after the type"));
    const CallToken where = peek();
    TRY_ASSIGN(const Operand place, value());
    TRY(expect_sign(",", "after the place"));
    TRY_ASSIGN(const Operand what, value());
    TRY(expect_sign(")", "after the value"));
    if (place.kind != Operand::Kind::Pointer) {  // an address that only the guest knows
      TRY_ASSIGN(const Operand data, temporary(word, type->size));
      TRY(add_store(word, type->size, data, what));
      return add_copy(word, CallStep::Kind::Write, {place, Operand{}}, data, type->size);
    }
    TRY(check_place(where, place, type->size));
    return add_store(word, type->size, place, what);
  }

  // poke(address, [offset,] place, size) copies from the data to memory, peek() from there.
  Result<void> copy() {
    const CallToken word = peek();
    at_ += 2;
    std::vector<std::pair<CallToken, Operand>> given;
    while (!is_sign(")")) {
      if (!given.empty()) TRY(expect_sign(",", "between two values"));
      const CallToken token = peek();
      TRY_ASSIGN(const Operand one, value());
      given.emplace_back(token, one);
    }
    if (given.size() != 3 && given.size() != 4)
      return wrong(word, "{0} needs an address, a place in the data and a size: {0}(addr, b, 64)", word.text);
    ++at_;
    const auto& [token, size] = given.back();
    const auto& [where, place] = given[given.size() - 2];
    if (!is_constant(size)) return wrong(token, "the size must be a number");
    TRY(check_place(where, place, static_cast<unsigned>(std::min<uint64_t>(size.value, kMaxCallData + 1))));
    return add_copy(word, word.text == "poke" ? CallStep::Kind::Write : CallStep::Kind::Read,
                    {given[0].second, given.size() == 4 ? given[1].second : Operand{}}, place, size.value);
  }

  Result<void> choose() {
    const CallToken word = peek();
    at_ += 2;
    TRY_ASSIGN(const FieldType* type, little_type());
    TRY(expect_sign(",", "after the type"));
    const CallToken where = peek();
    TRY_ASSIGN(const Operand place, value());
    TRY(expect_sign(",", "after the place"));
    const CallToken number = peek();
    TRY_ASSIGN(const Operand below, value());
    TRY(expect_sign(")", "after the number"));
    TRY(check_place(where, place, type->size));
    TRY(check_choice(number, below));
    return add_store(word, type->size, place, below, CallStep::Kind::Choose);
  }

  uint64_t calls_ = 0;
};

}  // namespace

Result<NamedCalls> parse_named_calls(std::string_view text, const std::string& origin, int first_line,
                                     const PreparedCalls& prepared) {
  TRY_ASSIGN(std::vector<CallToken> tokens, read_call_tokens(text, origin, first_line));
  return Parser(text, origin, std::move(tokens), prepared).parse();
}

Result<CallProgram> parse_calls(std::string_view text, const std::string& origin, int first_line) {
  TRY_ASSIGN(NamedCalls calls, parse_named_calls(text, origin, first_line, {}));
  return std::move(calls.program);
}

}  // namespace slalom
