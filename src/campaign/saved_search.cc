#include "campaign/saved_search.h"

#include "base/container.h"

namespace slalom {

Result<void> save_search(const std::filesystem::path& path, const Job& job, const Explorer& explorer) {
  ByteWriter out;
  encode(out, job);
  explorer.save(out);
  return write_container(path, FileKind::SearchState, out.bytes());
}

Result<bool> load_search(const std::filesystem::path& path, const Job& job, Explorer& explorer) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return false;
  TRY_ASSIGN(const std::vector<uint8_t> payload, read_container(path, FileKind::SearchState));
  ByteReader in(payload);
  Job saved;
  decode(in, saved);
  if (!in.ok()) return error("{}: the saved search cannot be read; delete it to start anew", path.string());
  if (!(saved == job))
    return error("{}: this is the saved search of another job ({} of {}); give another --state, or delete it",
                 path.string(), to_text(saved.strategy), saved.target.name);
  if (!explorer.load(in) || !in.at_end())
    return error("{}: the saved search cannot be read; delete it to start anew", path.string());
  return true;
}

}  // namespace slalom
