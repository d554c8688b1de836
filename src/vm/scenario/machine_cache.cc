#include "vm/scenario/machine_cache.h"

#include <xxhash.h>

#include <memory>

#include "base/bytes.h"
#include "base/container.h"
#include "base/file.h"
#include "base/log.h"
#include "kernel_store/cache_files.h"
#include "kernel_store/kernel_cache.h"
#include "vm/snapshot/snapshot_file.h"

namespace slalom::vm {
namespace {

constexpr const char* kMachine = ".machine";
constexpr const char* kNotes = ".notes";
constexpr uint64_t kNotesForm = 2;

std::string hash_name(const ByteWriter& form) {
  const XXH128_hash_t hash = XXH3_128bits(form.bytes().data(), form.bytes().size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

void add_options(const BootOptions& boot, const std::string& plan, std::span<const uint8_t> files,
                 ByteWriter& form) {
  form.text(boot.append);
  form.u64(boot.seed);
  form.u64(boot.pc.cpus);
  form.u64(boot.pc.memory);
  form.u64(boot.pc.start_seconds);
  form.text(plan);
  const XXH128_hash_t contents = XXH3_128bits(files.data(), files.size());
  form.fixed64(contents.high64);
  form.fixed64(contents.low64);
}

// Only the packages with files of this build: those that depend on it differ by how it was fetched.
void add_packages(const Kernel& kernel, ByteWriter& form) {
  for (const KernelPackage& package : kernel.packages)
    if (package.package.ends_with(kernel.release)) form.text(package.sha256);
}

}  // namespace

Result<ContentName> content_name(const BootOptions& boot, const std::string& plan) {
  TRY_ASSIGN(const Kernel kernel, kernel_of(boot));
  TRY_ASSIGN(const std::filesystem::path cache, cache_directory());
  TRY_ASSIGN(const std::vector<uint8_t> files,
             cached_initramfs(
                 cache / "initramfs",
                 {.kernel = kernel, .modules = boot.modules, .files = boot.files, .agent = agent_program()}));
  uint64_t image_sum = 0;
  if (kernel.packages.empty()) {
    TRY_ASSIGN(const std::vector<uint8_t> image, read_file(kernel.vmlinuz));
    image_sum = checksum(image);
  }
  ByteWriter form;
  form.text("prepared test 2");  // increment when prepare() changes
  add_packages(kernel, form);
  form.fixed64(image_sum);
  form.u64(boot.modules.size());
  for (const std::string& module : boot.modules) form.text(module);
  add_options(boot, plan, files, form);

  ByteWriter former;
  former.text("prepared test 1");
  former.text(kernel.name);
  for (const KernelPackage& package : kernel.packages) former.text(package.sha256);
  if (kernel.packages.empty()) former.fixed64(image_sum);
  add_options(boot, plan, files, former);
  return ContentName{hash_name(form), hash_name(former)};
}

Result<MachineCache> MachineCache::open() {
  TRY_ASSIGN(const std::filesystem::path cache, cache_directory());
  return MachineCache(cache / "snapshots");
}

std::string MachineCache::read_notes(const std::string& content, KeptMachine& kept) const {
  const Result<std::vector<uint8_t>> notes = read_file(path_of(content, kNotes));
  if (!notes.ok()) return notes.error().message;
  if (notes->size() < 8) return "its notes are cut short";
  ByteReader in(*notes);
  const uint64_t sum = in.fixed64();
  if (sum != checksum(std::span(*notes).subspan(8))) return "its notes are damaged";
  if (in.u64() != kNotesForm) return "its notes are of another version";
  kept.console = in.text();
  kept.threads = in.text();
  for (uint64_t lists = in.count(); lists > 0; --lists) {
    const std::string results = in.text();
    kept.prepared.emplace_back(results.begin(), results.end());
  }
  return in.ok() && in.at_end() ? "" : "its notes are malformed";
}

std::vector<std::vector<uint8_t>> MachineCache::prepared(const std::string& content) const {
  KeptMachine kept;
  return read_notes(content, kept).empty() ? kept.prepared : std::vector<std::vector<uint8_t>>();
}

std::optional<KeptMachine> MachineCache::find(const std::string& content) const {
  const auto miss = [&](std::string_view why) {
    DEBUG_LOG(Vm, "prepared machine {}: miss: {}", content, why);
    return std::nullopt;
  };
  std::error_code trouble;
  if (!std::filesystem::exists(path_of(content, kMachine), trouble)) return miss("not in the cache");
  KeptMachine kept;
  if (const std::string wrong = read_notes(content, kept); !wrong.empty()) return miss(wrong);
  Result<Booted> machine = load_snapshot(path_of(content, kMachine));
  if (!machine.ok()) return miss(machine.error().message);
  DEBUG_LOG(Vm, "prepared machine {}: hit", content);
  kept.machine = *std::move(machine);
  mark_used(path_of(content, kMachine));
  return kept;
}

Result<void> MachineCache::keep(const std::string& content, KeptMachine& kept) const {
  std::error_code trouble;
  std::filesystem::create_directories(directory_, trouble);
  if (trouble)
    return error("cannot make {}: {}; set SLALOM_CACHE to another directory", directory_.string(),
                 trouble.message());
  ByteWriter body;
  body.u64(kNotesForm);
  body.text(kept.console);
  body.text(kept.threads);
  body.u64(kept.prepared.size());
  for (const std::vector<uint8_t>& results : kept.prepared)
    body.text(std::string_view(reinterpret_cast<const char*>(results.data()), results.size()));
  ByteWriter notes;
  notes.fixed64(checksum(body.bytes()));
  std::vector<uint8_t> bytes = notes.take();
  bytes.insert(bytes.end(), body.bytes().begin(), body.bytes().end());
  Result<void> written = write_file(path_of(content, kNotes), bytes);
  if (written.ok()) written = save_snapshot(path_of(content, kMachine), kept.machine);
  if (!written.ok())
    return error("{}; set SLALOM_CACHE to a directory that can be written", written.error().message);
  remove_oldest();
  return {};
}

void MachineCache::remove_oldest() const {
  std::error_code ignored;
  for (std::filesystem::path& machine : files_to_forget(directory_, kMachine, kMost)) {
    std::filesystem::remove(machine, ignored);
    std::filesystem::remove(machine.replace_extension(kNotes), ignored);
  }
}

}  // namespace slalom::vm
