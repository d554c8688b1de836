#include "finding/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "finding/capsule.h"
#include "finding/finding_json.h"

namespace slalom {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJson = "finding.json";
constexpr const char* kReport = "report.txt";

// Holds the store's lock while the object lives. The kernel releases the lock if the process dies.
class Lock {
 public:
  static Result<Lock> take(const fs::path& root) {
    const fs::path path = root / ".lock";
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return failure(root);
    Lock lock(fd);
    while (::flock(fd, LOCK_EX) != 0)
      if (errno != EINTR) return failure(root);
    return lock;
  }
  Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Lock& operator=(Lock&&) = delete;
  ~Lock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit Lock(int fd) : fd_(fd) {}
  static Error failure(const fs::path& root) {
    return error("cannot write findings to {}: {}; choose another directory with --out", root.string(),
                 std::strerror(errno));
  }

  int fd_;
};

Result<void> make_directory(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  // Only some libraries report an error if a file has the name.
  if (!code && !fs::is_directory(path)) code = std::make_error_code(std::errc::not_a_directory);
  if (code)
    return error("cannot write findings to {}: {}; choose another directory with --out", path.string(),
                 code.message());
  return {};
}

bool better(const Finding& a, const Finding& b) {
  const auto rank = [](const Finding& f) {
    return std::tuple(f.schedule.switches.size(), f.schedule.data.size(), -static_cast<int>(f.minimality));
  };
  return rank(a) < rank(b);
}

// A capsule of the store.
struct KnownCapsule {
  Capsule capsule;
  std::vector<uint8_t> file;
  const Finding& finding() const { return capsule.finding; }
};

// Returns the capsule in `path`; empty if there is no such file. Moves a file that is no capsule out of the
// way.
Result<std::optional<KnownCapsule>> load_or_set_aside(const fs::path& path) {
  std::error_code code;
  if (!fs::exists(path, code)) return std::optional<KnownCapsule>();
  TRY_ASSIGN(std::vector<uint8_t> file, read_file(path));
  auto capsule = parse_signed_capsule(file);
  if (capsule.ok()) return std::optional(KnownCapsule{*std::move(capsule), std::move(file)});
  DEBUG_LOG(Finding, "refused {}: {}", path.string(), capsule.error().message);
  fs::path aside;
  for (int n = 1; aside.empty() || fs::exists(aside, code); ++n)
    aside = path.parent_path() / fmt::format("capsule.damaged-{}.slalom", n);
  fs::rename(path, aside, code);
  if (code) return error("cannot move the damaged {} out of the way: {}", path.string(), code.message());
  return std::optional<KnownCapsule>();
}

}  // namespace

Result<FindingStore> FindingStore::open(fs::path root, std::shared_ptr<const SigningKey> key) {
  TRY(make_directory(root));
  TRY(Lock::take(root));
  return FindingStore(std::move(root), std::move(key));
}

Result<fs::path> FindingStore::add(const Finding& finding, const std::string& report,
                                   const FindingWords& words) {
  const std::string id = signature(finding);
  const fs::path directory = root_ / id;
  const fs::path capsule = directory / kCapsuleName;
  TRY_ASSIGN(const Lock lock, Lock::take(root_));
  TRY(make_directory(directory));

  TRY_ASSIGN(std::optional<KnownCapsule> known, load_or_set_aside(capsule));
  if (known && signature(known->finding()) != id)
    return error("{} holds another finding (\"{}\"); move that folder away", directory.string(),
                 known->finding().verdict.title);
  if (known && known->finding().target.hash != finding.target.hash) {
    // The target has changed. Its former finding stays in a file of its own. An even earlier finding of the
    // present target counts as the known one.
    TRY(write_file(directory / fmt::format("capsule.{}.slalom", known->finding().target.hash), known->file));
    const fs::path earlier = directory / fmt::format("capsule.{}.slalom", finding.target.hash);
    TRY_ASSIGN(known, load_or_set_aside(earlier));
  }

  Finding kept = finding;
  std::error_code code;
  bool write_report = true, is_earlier = false;
  if (known) {
    const bool may_stay = key_ == nullptr || known->capsule.signed_by(*key_);
    if (may_stay && !better(finding, known->finding())) {
      kept = known->finding();
      is_earlier = true;
      write_report = !fs::exists(directory / kReport, code);
    }
    kept.occurrences = known->finding().occurrences + finding.occurrences;
  }
  TRY(save_capsule(capsule, kept, key_.get()));
  DEBUG_LOG(Finding, "wrote {}, {}signed: \"{}\", {} switches, {} occurrences", capsule.string(),
            key_ == nullptr ? "un" : "", kept.verdict.title, kept.schedule.switches.size(), kept.occurrences);
  TRY(write_file(directory / kJson,
                 json_text(finding_json(kept, kCapsuleName, is_earlier ? FindingWords() : words))));
  if (write_report) TRY(write_file(directory / kReport, report));
  return capsule;
}

Result<std::vector<StoredFinding>> list_findings(const fs::path& root) {
  std::vector<StoredFinding> findings;
  std::error_code code;
  for (fs::directory_iterator it(root, code), end; !code && it != end; it.increment(code)) {
    const fs::path capsule = it->path() / kCapsuleName;
    std::error_code missing;
    if (!fs::exists(capsule, missing)) continue;
    findings.push_back({it->path().filename().string(), it->path(), load_capsule(capsule)});
  }
  if (code) return error("cannot list the findings in {}: {}; check the path", root.string(), code.message());
  std::sort(findings.begin(), findings.end(),
            [](const StoredFinding& a, const StoredFinding& b) { return a.signature < b.signature; });
  return findings;
}

}  // namespace slalom
