#include "campaign/saved_search.h"

#include <new>

#include "base/container.h"

namespace slalom {

Result<LockFile> lock_search(const std::filesystem::path& path) {
  TRY_ASSIGN(std::optional<LockFile> lock, LockFile::try_lock(path));
  if (!lock)
    return error("{}: another search is using it now; wait for its end, or give another --state",
                 path.string());
  return std::move(*lock);
}

Result<void> save_search(const std::filesystem::path& path, const Job& job, const Explorer& explorer,
                         const std::vector<UncontrolledAct>& uncontrolled) {
  try {
    ByteWriter out;
    encode(out, job);
    explorer.save(out);
    out.u64(uncontrolled.size());
    for (const UncontrolledAct& act : uncontrolled) {
      out.text(act.text);
      out.u8(act.leaves_orders_out);
    }
    if (out.bytes().size() > kMaxPayload)
      return error("{}: the search has become too large to be saved: its {} MB are more than a file holds",
                   path.string(), out.bytes().size() >> 20);
    return write_container(path, FileKind::SearchState, out.bytes());
  } catch (const std::bad_alloc&) {
    return error("{}: too little memory to save the search", path.string());
  }
}

Result<bool> load_search(const std::filesystem::path& path, const Job& job, Explorer& explorer,
                         std::vector<UncontrolledAct>& uncontrolled) {
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
  const bool loaded = explorer.load(in);
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    UncontrolledAct& act = uncontrolled.emplace_back();
    act.text = in.text();
    act.leaves_orders_out = in.u8() != 0;
  }
  if (!loaded || !in.ok() || !in.at_end())
    return error("{}: the saved search cannot be read; delete it to start anew", path.string());
  return true;
}

}  // namespace slalom
