// CallValues: parses the values in a list of calls to operands and data. This is the part of parse_calls()
// that knows nothing of statements; only call_parser.cc uses it.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inputs/call_lexer.h"
#include "inputs/call_program.h"
#include "inputs/call_types.h"
#include "inputs/image.h"
#include "inputs/struct_types.h"
#include "inputs/system_calls.h"

namespace slalom {

inline constexpr uint32_t kDefaultOutput = 256;  // size of &name in bytes
inline constexpr int kMaxDepth = 32;

inline bool is_constant(const Operand& operand) {
  return operand.kind == Operand::Kind::Constant;
}

class CallValues {
 public:
  virtual ~CallValues() = default;
  CallValues(std::string_view text, const std::string& origin, std::vector<CallToken> tokens,
             const PreparedCalls& prepared)
      : text_(text), origin_(origin), tokens_(std::move(tokens)) {
    use(prepared.of_all, CallList::OfAll);
    use(prepared.of_flow, CallList::OfFlow);
  }

 protected:
  template <typename... Args>
  Error wrong(const CallToken& token, fmt::format_string<Args...> format, Args&&... args) const {
    return error("{}:{}:{}: {}", origin_, token.line, token.column,
                 fmt::format(format, std::forward<Args>(args)...));
  }
  static std::string shown(const CallToken& token) {
    if (token.kind == CallToken::Kind::Text) return "a text";
    if (token.kind == CallToken::Kind::End || token.kind == CallToken::Kind::EndOfLine) return "end of line";
    return fmt::format("`{}`", token.text);
  }
  const CallToken& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is_sign(std::string_view sign, size_t ahead = 0) const {
    return peek(ahead).kind == CallToken::Kind::Sign && peek(ahead).text == sign;
  }
  bool take_sign(std::string_view sign) {
    if (!is_sign(sign)) return false;
    ++at_;
    return true;
  }
  Result<void> expect_sign(std::string_view sign, std::string_view where) {
    if (take_sign(sign)) return {};
    return wrong(peek(), "expected `{}` {}, not {}", sign, where, shown(peek()));
  }

  // Makes the names of a prepared list known.
  void use(const NamedCalls* list, CallList which) {
    if (list == nullptr) return;
    const auto at = static_cast<size_t>(which);
    program_.prepared[at - 1] = {static_cast<uint32_t>(list->program.calls()),
                                 static_cast<uint32_t>(list->program.data.size())};
    objects_[at] = list->program.objects;
    for (const auto& [name, type] : list->types) types_[name] = type;
    for (auto [name, operand] : list->names) {
      if (operand.kind != Operand::Kind::Constant && operand.list == CallList::Own) operand.list = which;
      names_[name] = operand;
      prepared_names_.insert(name);
    }
  }
  size_t data_size(CallList list) const {
    return list == CallList::Own ? program_.data.size()
                                 : program_.prepared[static_cast<size_t>(list) - 1].data;
  }

  // The size of the buffer, text or structure that begins there.
  std::optional<uint32_t> object_size(const Operand& place) const {
    if (place.kind != Operand::Kind::Pointer) return std::nullopt;
    const auto& objects =
        place.list == CallList::Own ? program_.objects : objects_[static_cast<size_t>(place.list)];
    std::optional<uint32_t> size;
    for (const DataObject& each : objects)
      if (each.offset == place.value) size = each.size;
    return size;
  }

  Result<void> check_name(const CallToken& token) const {
    if (prepared_names_.contains(token.text))
      return wrong(token, "`{}` is prepared already: choose another name", token.text);
    if (is_function(token.text) || is_statement(token.text) || find_type(token.text) != nullptr ||
        linux_constant(token.text))
      return wrong(token, "`{}` has a meaning already: choose another name", token.text);
    return {};
  }

  static bool is_statement(std::string_view name) {
    return name == "send" || name == "io_uring" || name == "submit";
  }
  static bool is_function(std::string_view name) {
    return name == "buf" || name == "load" || name == "store" || name == "sizeof" || name == "choose" ||
           name == "poke" || name == "peek";
  }

  Result<void> add(const CallStep& step, const CallToken& token) {
    if (program_.steps.size() == kMaxCallSteps)
      return wrong(token, "too long: a list has at most {} calls and stores", kMaxCallSteps);
    program_.steps.push_back(step);
    return {};
  }
  // `place` points to the data of some list.
  Result<void> add_store(const CallToken& token, uint16_t size, const Operand& place, const Operand& what,
                         CallStep::Kind kind = CallStep::Kind::Store) {
    CallStep step{
        .kind = kind, .list = place.list, .size = size, .number = static_cast<uint32_t>(place.value)};
    step.operands[0] = what;
    return add(step, token);
  }

  // Copies between data and an address that only the guest knows: the sum of two operands.
  Result<void> add_copy(const CallToken& token, CallStep::Kind kind, const std::array<Operand, 2>& address,
                        const Operand& place, uint64_t size) {
    if (size > UINT16_MAX) return wrong(token, "at most {} bytes can be copied at once", UINT16_MAX);
    CallStep step{.kind = kind,
                  .list = place.list,
                  .size = static_cast<uint16_t>(size),
                  .number = static_cast<uint32_t>(place.value)};
    step.operands[0] = address[0];
    step.operands[1] = address[1];
    return add(step, token);
  }
  Result<Operand> temporary(const CallToken& token, uint64_t size) {
    TRY_ASSIGN(const uint32_t offset, allocate(token, size));
    return Operand{.kind = Operand::Kind::Pointer, .value = offset};
  }

  // --- data ---

  Result<uint32_t> allocate(const CallToken& token, uint64_t size) {
    const size_t unit = size >= 4096 ? 4096 : 16;
    const size_t offset = (program_.data.size() + unit - 1) / unit * unit;
    if (size > kMaxCallData || offset + size > kMaxCallData)
      return wrong(token, "too much data: a list of calls has at most {} KiB", kMaxCallData / 1024);
    program_.data.resize(offset + size);
    program_.objects.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(size)});
    return static_cast<uint32_t>(offset);
  }
  Result<Operand> object(const CallToken& token, std::string_view bytes) {
    TRY_ASSIGN(const uint32_t offset, allocate(token, bytes.size()));
    std::copy(bytes.begin(), bytes.end(), program_.data.begin() + offset);
    return Operand{.kind = Operand::Kind::Pointer, .value = offset};
  }
  Result<Operand> room(const CallToken& token, const Operand& size) {
    if (!is_constant(size) || size.value == 0)
      return wrong(token, "the size of a buffer must be a number above 0");
    TRY_ASSIGN(const uint32_t offset, allocate(token, size.value));
    return Operand{.kind = Operand::Kind::Pointer, .value = offset};
  }

  Result<const FieldType*> little_type() {
    const CallToken& token = peek();
    const FieldType* type = find_type(token.text);
    if (token.kind != CallToken::Kind::Name || type == nullptr || type->big_endian)
      return wrong(token, "expected a type, not {}: u8, u16, u32, u64, i8, i16, i32, i64 or ptr",
                   shown(token));
    ++at_;
    return type;
  }
  Result<void> check_place(const CallToken& token, const Operand& place, unsigned size) const {
    if (place.kind != Operand::Kind::Pointer)
      return wrong(token, "expected a place in the data: the name of a buffer, text or structure");
    const size_t data = data_size(place.list);
    if (place.value > data || data - place.value < size) return wrong(token, "this lies outside the data");
    return {};
  }

  // The bytes of a structure. Numbers that are not known yet are stored when the call is made.
  struct Bytes {
    struct Late {
      CallToken token;
      size_t offset;
      uint8_t size;
      Operand what;
    };
    std::string bytes;
    std::vector<Late> late;

    void append(const Bytes& other) {
      for (Late each : other.late) {
        each.offset += bytes.size();
        late.push_back(each);
      }
      bytes += other.bytes;
    }
    void append_zeros(size_t unit) { bytes.resize((bytes.size() + unit - 1) / unit * unit); }
  };

  // Parses a word that stands for bytes, such as ifreq{...}. Returns nothing, and takes no token, if there is
  // no such word here.
  virtual Result<std::optional<Bytes>> bytes_word() = 0;

  // Puts a number at an offset, big-endian ones only if they are known.
  Result<void> put(Bytes& to, size_t offset, unsigned size, bool big_endian, const CallToken& token,
                   const Operand& what) const {
    if (to.bytes.size() < offset + size) to.bytes.resize(offset + size);
    if (!is_constant(what)) {
      if (big_endian) return wrong(token, "a big-endian number must be known beforehand");
      to.late.push_back({token, offset, static_cast<uint8_t>(size), what});
      return {};
    }
    for (unsigned i = 0; i < size; ++i)
      to.bytes[offset + i] = static_cast<char>(what.value >> (8 * (big_endian ? size - 1 - i : i)));
    return {};
  }

  Result<Operand> placed(const CallToken& token, const Bytes& what) {
    if (what.bytes.size() > kMaxCallData) return wrong(token, "too much data for a list of calls");
    if (what.bytes.empty()) return wrong(token, "a structure needs at least one field");
    TRY_ASSIGN(const Operand whole, object(token, what.bytes));
    for (const Bytes::Late& each : what.late) {
      Operand place = whole;
      place.value += each.offset;
      TRY(add_store(each.token, each.size, place, each.what));
    }
    return whole;
  }

  // Parses {u16 AF_INET, u16be 80, "abc", zero(8), ifreq{...}, ...}.
  Result<Bytes> structure() {
    ++at_;
    Bytes all;
    bool first = true;
    while (!is_sign("}")) {
      if (!std::exchange(first, false)) TRY(expect_sign(",", "between two fields"));
      TRY(structure_field(all));
      if (all.bytes.size() > kMaxCallData) return wrong(peek(), "too much data for a list of calls");
    }
    ++at_;
    return all;
  }

  Result<void> structure_field(Bytes& all) {
    const CallToken word = peek();
    const FieldType* type = word.kind == CallToken::Kind::Name ? find_type(word.text) : nullptr;
    if (word.kind == CallToken::Kind::Text) {
      ++at_;
      all.bytes += word.text;
      return {};
    }
    if (word.text == "zero" || word.text == "text") return filled(all.bytes);
    if (type != nullptr) {
      ++at_;
      const CallToken start = peek();
      TRY_ASSIGN(const Operand field, value());
      if (!is_constant(field) && type->big_endian)
        return wrong(start, "a field of type {} must be known beforehand", type->name);
      return put(all, all.bytes.size(), type->size, type->big_endian, start, field);
    }
    TRY_ASSIGN(const std::optional<Bytes> inner, bytes_word());
    if (!inner)
      return wrong(
          word,
          "expected a field, not {}: a type (u8, u16, u32, u64, i8 to i64, u16be, u32be, u64be, ptr) "
          "with a value, \"bytes\", text(size, \"...\"), zero(size) or a structure such as ifreq{{...}}",
          shown(word));
    all.append(*inner);
    return {};
  }

  Result<void> filled(std::string& bytes) {
    const CallToken word = peek();
    ++at_;
    TRY(expect_sign("(", "before the size"));
    TRY_ASSIGN(const Operand size, value());
    if (!is_constant(size) || size.value > kMaxCallData)
      return wrong(word, "the size must be a number up to {}", kMaxCallData);
    std::string text;
    if (word.text == "text") {
      TRY(expect_sign(",", "after the size"));
      text = peek().text;
      if (peek().kind != CallToken::Kind::Text || text.size() > size.value)
        return wrong(peek(), "expected a text of at most {} bytes", size.value);
      ++at_;
    }
    TRY(expect_sign(")", "after the size"));
    text.resize(size.value);
    bytes += text;
    return {};
  }

  // --- values ---

  static int precedence(const CallToken& token) {
    if (token.kind != CallToken::Kind::Sign) return 0;
    if (token.text == "|") return 1;
    if (token.text == "^") return 2;
    if (token.text == "&") return 3;
    if (token.text == "<<" || token.text == ">>") return 4;
    if (token.text == "+" || token.text == "-") return 5;
    return token.text == "*" ? 6 : 0;
  }

  Result<Operand> value(int least = 1) {
    if (++depth_ > kMaxDepth) return wrong(peek(), "too many brackets within each other");
    TRY_ASSIGN(Operand left, term());
    while (precedence(peek()) >= least) {
      const CallToken sign = peek();
      ++at_;
      TRY_ASSIGN(const Operand right, value(precedence(sign) + 1));
      TRY_ASSIGN(left, combined(sign, left, right));
    }
    --depth_;
    return left;
  }

  Result<Operand> combined(const CallToken& sign, Operand left, Operand right) const {
    const char c = sign.text[0];
    if (c == '+' && is_constant(left)) std::swap(left, right);
    if (!is_constant(right) || (!is_constant(left) && c != '+' && c != '-'))
      return wrong(sign, "only + and - a number can be done to what is not known beforehand");
    const uint64_t a = left.value, b = right.value;
    if (!is_constant(left)) {
      const auto by = static_cast<int64_t>(c == '+' ? b : 0 - b);
      if (left.kind == Operand::Kind::Pointer) {
        left.value += static_cast<uint64_t>(by);
        if (left.value > data_size(left.list)) return wrong(sign, "this lies outside the data");
        return left;
      }
      const int64_t sum =
          left.addend + std::clamp<int64_t>(by, INT32_MIN * int64_t{2}, INT32_MAX * int64_t{2});
      if (sum < INT32_MIN || sum > INT32_MAX) return wrong(sign, "the number is too large to be added");
      left.addend = static_cast<int32_t>(sum);
      return left;
    }
    left.value = c == '|'   ? a | b
                 : c == '^' ? a ^ b
                 : c == '&' ? a & b
                 : c == '<' ? (b < 64 ? a << b : 0)
                 : c == '>' ? (b < 64 ? a >> b : 0)
                 : c == '+' ? a + b
                 : c == '-' ? a - b
                            : a * b;
    return left;
  }

  Result<Operand> term() {
    const CallToken token = peek();
    switch (token.kind) {
      case CallToken::Kind::Number:
        ++at_;
        return Operand{.value = token.number};
      case CallToken::Kind::Text:
        ++at_;
        return object(token, token.text + '\0');
      case CallToken::Kind::Name:
        return named();
      case CallToken::Kind::Sign:
        break;
      case CallToken::Kind::EndOfLine:
      case CallToken::Kind::End:
        return wrong(token, "the line ends where a value is expected");
    }
    if (token.text == "{") {
      TRY_ASSIGN(const Bytes all, structure());
      return placed(token, all);
    }
    if (token.text == "&") return output();
    if (token.text != "-" && token.text != "~" && token.text != "(")
      return wrong(token, "expected a value, not {}", shown(token));
    ++at_;
    if (token.text == "(") {
      TRY_ASSIGN(const Operand inside, value());
      TRY(expect_sign(")", "after the value"));
      return inside;
    }
    if (++depth_ > kMaxDepth) return wrong(token, "too many signs in a row");
    TRY_ASSIGN(Operand of, term());
    --depth_;
    if (!is_constant(of)) return wrong(token, "`{}` needs what is known beforehand", token.text);
    of.value = token.text == "-" ? 0 - of.value : ~of.value;
    return of;
  }

  // Parses &name, memory for a call's output. Its first use allocates it.
  Result<Operand> output() {
    ++at_;
    const CallToken token = peek();
    if (token.kind != CallToken::Kind::Name)
      return wrong(token, "a name must follow &, not {}", shown(token));
    ++at_;
    if (const auto known = names_.find(token.text); known != names_.end()) {
      if (known->second.kind == Operand::Kind::Pointer && !is_sign("(")) return known->second;
      return wrong(token, "`{}` is {}", token.text,
                   known->second.kind == Operand::Kind::Pointer
                       ? "there already: a size can be given only the first time"
                       : "a number: it has no place in the data");
    }
    TRY(check_name(token));
    Operand size{.value = kDefaultOutput};
    if (take_sign("(")) {
      const CallToken inside = peek();
      if (const auto type = StructType::find(inside.text); type && is_sign(")", 1)) {
        ++at_;
        size.value = type->size();
        types_[token.text] = inside.text;
      } else {
        TRY_ASSIGN(size, value());
      }
      TRY(expect_sign(")", "after the size"));
    }
    TRY_ASSIGN(const Operand result, room(token, size));
    names_[token.text] = result;
    return result;
  }

  Result<Operand> named() {
    const CallToken token = peek();
    if (!names_.contains(token.text)) {
      TRY_ASSIGN(const std::optional<Bytes> word, bytes_word());
      if (word) return placed(token, *word);
    }
    ++at_;
    if (is_function(token.text) && is_sign("(")) return function(token);
    if (const auto known = names_.find(token.text); known != names_.end()) {
      if (is_sign("[") || is_sign(".")) return element(token, known->second);
      return known->second;
    }
    if (const auto type = StructType::find(token.text); type && is_sign(".")) {
      TRY_ASSIGN(const StructField* field, field_of(*type));
      return Operand{.value = field->offset};
    }
    if (const auto constant = linux_constant(token.text))
      return Operand{.value = static_cast<uint64_t>(*constant)};
    if (is_sign("{"))
      return wrong(token, "unknown structure `{}`{}", token.text, similar_structs(token.text));
    if (is_sign("("))
      return wrong(token, "a call cannot be an argument: name its result on a line of its own, x = {}(...)",
                   token.text);
    std::string known;
    for (const auto& [name, operand] : names_)
      if (name.find('.') == std::string::npos) known += (known.empty() ? "; names so far: " : ", ") + name;
    return wrong(token, "unknown name `{}`{}{}", token.text, similar_constants(token.text), known);
  }

  Result<Operand> function(const CallToken& token) {
    ++at_;
    Operand result;
    const CallToken inside = peek();
    if (token.text == "buf") {
      TRY_ASSIGN(const Operand size, value());
      TRY_ASSIGN(result, room(inside, size));
    } else if (const auto type = StructType::find(inside.text);
               token.text == "sizeof" && type && is_sign(")", 1) && !names_.contains(inside.text)) {
      ++at_;
      result.value = type->size();
    } else if (token.text == "sizeof") {
      TRY_ASSIGN(const Operand of, value());
      TRY(check_place(inside, of, 0));
      result.value = object_size(of).value_or(0);
      if (result.value == 0) return wrong(inside, "sizeof needs the name of a buffer, text or structure");
    } else if (token.text == "load") {
      TRY_ASSIGN(const FieldType* type, little_type());
      TRY(expect_sign(",", "after the type"));
      const CallToken where = peek();
      TRY_ASSIGN(Operand place, value());
      if (place.kind != Operand::Kind::Pointer) {
        const Operand address = place;
        TRY_ASSIGN(place, temporary(where, type->size));
        TRY(add_copy(where, CallStep::Kind::Read, {address, Operand{}}, place, type->size));
      }
      TRY(check_place(where, place, type->size));
      result = load(*type, place);
    } else if (token.text == "choose") {
      TRY_ASSIGN(const Operand below, value());
      TRY(check_choice(inside, below));
      TRY_ASSIGN(const Operand place, temporary(token, 4));
      TRY(add_store(token, 4, place, below, CallStep::Kind::Choose));
      result = load(*find_type("u32"), place);
    } else {
      return wrong(token, "`{}` gives no value: it is a line of its own", token.text);
    }
    TRY(expect_sign(")", fmt::format("after what {} needs", token.text)));
    return result;
  }

  static Operand load(const FieldType& type, const Operand& place) {
    return {.kind = Operand::Kind::Load,
            .size = type.size,
            .is_signed = type.is_signed,
            .list = place.list,
            .value = place.value};
  }
  Result<void> check_choice(const CallToken& token, const Operand& below) const {
    if (is_constant(below) && below.value >= 1 && below.value <= CallStep::kMostChoices) return {};
    return wrong(token, "choose() needs a number from 1 to {}: it gives one below that",
                 CallStep::kMostChoices);
  }

  // Parses .NAME, .NAME.NAME or .NAME[2], a field of a structure.
  Result<const StructField*> field_of(const StructType& type) {
    TRY(expect_sign(".", "before a field"));
    const CallToken token = peek();
    std::string name = peek().text;
    if (token.kind != CallToken::Kind::Name) return wrong(token, "expected a field, not {}", shown(token));
    ++at_;
    while (is_sign(".") && peek(1).kind == CallToken::Kind::Name) {
      name += "." + peek(1).text;
      at_ += 2;
    }
    return known_field(type, token, name);
  }
  // The field stays valid as long as its type.
  Result<const StructField*> known_field(const StructType& type, const CallToken& token,
                                         const std::string& name) const {
    if (const StructField* field = type.field(name)) return field;
    std::string some;
    for (const StructField& each : type.fields())
      if (some.size() < 60) some += (some.empty() ? "" : ", ") + std::string(each.name);
    const std::string similar = similar_fields(type, name);
    return wrong(token, "{} has no field `{}`{}", type.name(), name,
                 similar.empty() ? fmt::format("; it has {} ...", some) : similar);
  }

  // Parses p[1], an int, or p.u64[1], or p.NAME if p is a structure.
  Result<Operand> element(const CallToken& token, const Operand& base) {
    const FieldType* type = find_type("i32");
    const bool dotted = is_sign(".") && (find_type(peek(1).text) == nullptr || !is_sign("[", 2));
    if (const auto known = types_.find(token.text); known != types_.end() && dotted) {
      const CallToken where = peek(1);
      const std::optional<StructType> whole = StructType::find(known->second);
      TRY_ASSIGN(const StructField* field, field_of(*whole));
      if (field->kind == StructField::Kind::Bytes && whole->number_in(*field) != nullptr)
        field = whole->number_in(*field);
      if (field->kind > StructField::Kind::Pointer || field->kind == StructField::Kind::BigEndian)
        return wrong(where, "only a number in the processor's order can be read from a structure");
      Operand place = base;
      place.value += field->offset;
      TRY(check_place(where, place, field->size));
      return load({.name = "",
                   .size = static_cast<uint8_t>(field->size),
                   .is_signed = field->kind == StructField::Kind::Signed},
                  place);
    }
    if (take_sign(".")) {
      TRY_ASSIGN(type, little_type());
    }
    TRY(expect_sign("[", "before an index"));
    const CallToken where = peek();
    TRY_ASSIGN(const Operand index, value());
    TRY(expect_sign("]", "after the index"));
    if (!is_constant(index) || index.value > kMaxCallData) return wrong(where, "the index must be a number");
    Operand place = base;
    place.value += index.value * type->size;
    if (base.kind != Operand::Kind::Pointer)
      return wrong(token, "`{}` is a number: it has no elements", token.text);
    TRY(check_place(where, place, type->size));
    return load(*type, place);
  }

  std::string_view text_;
  const std::string& origin_;
  std::vector<CallToken> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::map<std::string, Operand, std::less<>> names_;
  std::map<std::string, std::string, std::less<>> types_;  // structures of names, by name
  std::set<std::string, std::less<>> prepared_names_;
  std::array<std::vector<DataObject>, 3> objects_;  // by list; those of prepared ones
  CallProgram program_;
};

}  // namespace slalom
