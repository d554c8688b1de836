// Layouts of the structures of Linux's headers for x86-64, by name.
//
// scripts/generate-struct-table generates the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slalom {

struct StructField {
  enum class Kind : uint8_t {
    Unsigned,
    Signed,
    BigEndian,
    Pointer,
    Text,   // an array of characters
    Bytes,  // any other array, or a structure
  };
  std::string_view name;  // "sin_addr.s_addr"
  uint32_t offset = 0;
  Kind kind = Kind::Unsigned;
  uint32_t size = 0;
};

class StructType {
 public:
  // std::nullopt if there is no structure of this name.
  static std::optional<StructType> find(std::string_view name);

  std::string_view name() const { return name_; }
  uint32_t size() const { return size_; }
  const std::vector<StructField>& fields() const { return fields_; }
  // A field by its name, or by the end of its name if that names one place: "s_addr". nullptr if there is
  // none.
  const StructField* field(std::string_view name) const;
  // The first number in a field that is a structure; nullptr if it begins with something else.
  const StructField* number_in(const StructField& field) const;

 private:
  std::string_view name_;
  uint32_t size_ = 0;
  std::vector<StructField> fields_;
};

// Returns names like the given one, for messages: " (did you mean ifreq?)"; empty if there are none.
std::string similar_structs(std::string_view name);
std::string similar_fields(const StructType& type, std::string_view name);

}  // namespace slalom
