#include "symbols/dwarf/dwarf.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "symbols/dwarf/dwarf_session.h"
#include "symbols/elf_symbols.h"

namespace slalom {
namespace {

// libdw calls this for a module that was added by its addresses only: a file whose sections are scattered.
int find_scattered_file(Dwfl_Module*, void** userdata, const char*, Dwarf_Addr, char** file_name, Elf**) {
  const auto* file = static_cast<const DebugFile*>(*userdata);
  const int descriptor = ::open(file->path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor >= 0) *file_name = strdup(file->path.c_str());
  return descriptor;
}

int find_section(Dwfl_Module*, void** userdata, const char*, Dwarf_Addr, const char* section, GElf_Word,
                 const GElf_Shdr*, Dwarf_Addr* address) {
  const auto* file = static_cast<const DebugFile*>(*userdata);
  const auto known = file->sections.find(section);
  *address = known == file->sections.end() ? static_cast<Dwarf_Addr>(-1) : known->second;
  return DWARF_CB_OK;
}

// Returns the file and line of the call that was inlined.
SourcePlace::Call call_of(Dwarf_Die* unit, Dwarf_Die* inlined) {
  SourcePlace::Call call;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  const std::optional<uint64_t> file = die_number(inlined, DW_AT_call_file);
  if (file && dwarf_getsrcfiles(unit, &files, &count) == 0 && *file < count) {
    const char* name = dwarf_filesrc(files, *file, nullptr, nullptr);
    if (name != nullptr) call.file = name;
  }
  call.line = static_cast<int>(die_number(inlined, DW_AT_call_line).value_or(0));
  return call;
}

// Adds the functions around an address, from the innermost one outwards.
void add_functions(Dwarf_Die* unit, Dwarf_Addr address, SourcePlace& place) {
  Dwarf_Die* raw = nullptr;
  if (dwarf_getscopes(unit, address, &raw) <= 0) return;
  const DieScopes innermost(raw);
  // dwarf_getscopes() goes from the first inlined function to the scopes of its declaration.
  // dwarf_getscopes_die() goes to the functions that it was inlined into.
  raw = nullptr;
  const int count = dwarf_getscopes_die(innermost.get(), &raw);
  const DieScopes around(raw);
  std::optional<SourcePlace::Call> call;
  for (int i = 0; i < count; ++i) {
    Dwarf_Die* die = raw + i;
    const int tag = dwarf_tag(die);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram && tag != DW_TAG_entry_point) continue;
    if (call) {
      call->function = die_name(die);
      place.inlined_into.push_back(*std::move(call));
      call.reset();
    } else {
      place.function = die_name(die);
    }
    if (tag != DW_TAG_inlined_subroutine) return;
    call = call_of(unit, die);
  }
}

std::string symbol_of(Dwarf_Die* inlined) {
  Dwarf_Attribute attribute;
  const char* name = dwarf_formstring(dwarf_attr_integrate(inlined, DW_AT_linkage_name, &attribute));
  return name != nullptr ? name : die_name(inlined);
}

// Adds the code that was inlined below a unit or a function.
void add_inlined(Dwarf_Die* parent, uint64_t bias, std::vector<InlinedCode>& found) {
  Dwarf_Die die;
  if (dwarf_child(parent, &die) != 0) return;
  do {
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_inlined_subroutine) {
      InlinedCode code{symbol_of(&die), {}};
      Dwarf_Addr base = 0, begin = 0, end = 0;
      for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;)
        code.ranges.push_back({begin + bias, end + bias});
      found.push_back(std::move(code));
    }
    if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block ||
        tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type)
      add_inlined(&die, bias, found);
  } while (dwarf_siblingof(&die, &die) == 0);
}

Result<void> find_ranges(DwarfSession& session) {
  TRY_ASSIGN(const std::vector<uint8_t> bytes, read_file(session.file.path));
  for (const auto& [name, address] : session.file.sections) {
    TRY_ASSIGN(const ElfPiece section, elf_section(bytes, name));
    if (UINT64_MAX - address < section.bytes.size())
      return error("{} of {} cannot lie at {:#x}", name, session.file.path.string(), address);
    session.ranges.push_back({address, section.bytes.size()});
  }
  return {};
}

Result<void> report(DwarfSession& session) {
  const std::string path = session.file.path.string();
  dwfl_report_begin(session.dwfl.get());
  if (session.ranges.empty()) {
    session.module =
        dwfl_report_elf(session.dwfl.get(), path.c_str(), path.c_str(), -1, session.file.bias, true);
  } else {
    uint64_t low = UINT64_MAX, high = 0;
    for (const DwarfSession::Range& range : session.ranges) {
      low = std::min(low, range.start);
      high = std::max(high, range.start + range.size);
    }
    session.module = dwfl_report_module(session.dwfl.get(), path.c_str(), low, high);
  }
  if (session.module == nullptr)
    return error("cannot read {} for its debug information: {}", path, dwfl_errmsg(-1));
  void** userdata = nullptr;
  dwfl_module_info(session.module, &userdata, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  *userdata = &session.file;
  dwfl_report_end(session.dwfl.get(), nullptr, nullptr);
  return {};
}

}  // namespace

std::string build_id_of(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  elf_version(EV_CURRENT);
  Elf* const elf = elf_begin(descriptor, ELF_C_READ_MMAP, nullptr);
  const void* bytes = nullptr;
  const ssize_t size = elf != nullptr ? dwelf_elf_gnu_build_id(elf, &bytes) : 0;
  std::string text;
  for (ssize_t i = 0; i < size; ++i) text += fmt::format("{:02x}", static_cast<const uint8_t*>(bytes)[i]);
  elf_end(elf);
  ::close(descriptor);
  return text;
}

std::string SourcePlace::text() const {
  std::string text = fmt::format("{}:{}", file, line);
  if (function.empty()) return text;
  text += " (" + function;
  for (const Call& call : inlined_into)
    text += fmt::format(", inlined into {} at {}:{}", call.function, call.file, call.line);
  return text + ")";
}

DebugInfo::DebugInfo(std::unique_ptr<State> state) : state_(std::move(state)) {}
DebugInfo::~DebugInfo() = default;
DebugInfo::DebugInfo(DebugInfo&&) noexcept = default;
DebugInfo& DebugInfo::operator=(DebugInfo&&) noexcept = default;

const std::vector<std::filesystem::path>& DebugInfo::without() const {
  return state_->without;
}

Result<DebugInfo> DebugInfo::open(std::vector<DebugFile> files,
                                  const std::vector<std::filesystem::path>& directories) {
  auto state = std::make_unique<State>();
  // The first three are libdw's default: beside the file, below it, and where packages put them.
  state->search_path = ":.debug:/usr/lib/debug";
  for (const auto& directory : directories) state->search_path += ":" + directory.string();
  state->search_path_pointer = state->search_path.data();
  state->callbacks = {.find_elf = find_scattered_file,
                      .find_debuginfo = dwfl_standard_find_debuginfo,
                      .section_address = find_section,
                      .debuginfo_path = &state->search_path_pointer};
  for (DebugFile& file : files) {
    auto session = std::make_unique<DwarfSession>();
    session->file = std::move(file);
    session->dwfl.reset(dwfl_begin(&state->callbacks));
    if (!session->dwfl) return error("cannot read debug information: {}", dwfl_errmsg(-1));
    TRY(find_ranges(*session));
    TRY(report(*session));
    Dwarf_Addr bias = 0;
    if (dwfl_module_getdwarf(session->module, &bias) == nullptr) state->without.push_back(session->file.path);
    state->sessions.push_back(std::move(session));
  }
  return DebugInfo(std::move(state));
}

std::vector<CompiledUnit> DebugInfo::units() const {
  std::vector<CompiledUnit> all;
  for (const auto& session : state_->sessions) {
    Dwarf_Addr bias = 0;
    for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(session->module, unit, &bias)) != nullptr;) {
      Dwarf_Attribute attribute;
      const char* name = dwarf_diename(unit);
      const char* producer = dwarf_formstring(dwarf_attr(unit, DW_AT_producer, &attribute));
      all.push_back({name == nullptr ? "" : name, producer == nullptr ? "" : producer,
                     dwarf_srclang(unit) == DW_LANG_Mips_Assembler});
    }
  }
  return all;
}

std::optional<SourcePlace> DebugInfo::at(uint64_t address) const {
  const DwarfSession* session = state_->holding(address);
  if (session == nullptr) return std::nullopt;
  Dwfl_Module* module = session->module;
  SourcePlace place;
  Dwfl_Line* line = dwfl_module_getsrc(module, address);
  const char* file =
      line == nullptr ? nullptr : dwfl_lineinfo(line, nullptr, &place.line, nullptr, nullptr, nullptr);
  if (file == nullptr) return std::nullopt;
  place.file = file;
  if (const char* folder = dwfl_line_comp_dir(line); folder != nullptr) place.folder = folder;
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = dwfl_module_addrdie(module, address, &bias);
  if (unit != nullptr) add_functions(unit, address - bias, place);
  return place;
}

std::vector<InlinedCode> DebugInfo::inlined_code() const {
  std::vector<InlinedCode> found;
  for (const auto& session : state_->sessions) {
    Dwarf_Addr bias = 0;
    for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(session->module, unit, &bias)) != nullptr;)
      add_inlined(unit, bias, found);
  }
  return found;
}

}  // namespace slalom
