#include "campaign/preliminary.h"

#include "base/log.h"
#include "campaign/target.h"

namespace slalom {

Result<void> run_preliminary(const Target& target, const std::function<bool()>& stop) {
  if (target.preliminary == nullptr) return {};
  const std::unique_ptr<Strategy> strategy = target.preliminary->begin();
  if (strategy == nullptr) return {};
  ExploreOptions options;
  options.inputs = target.preliminary->inputs();
  options.checkpoint_every = 0;
  Explorer explorer(
      *strategy, [&] { return target.preliminary->make_worker(); }, options);
  explorer.stop = stop;
  TRY_ASSIGN(const ExploreResult result, explorer.run());
  DEBUG_LOG(Campaign, "before the search: {}", result.coverage.statement);
  target.preliminary->end(result);
  return {};
}

}  // namespace slalom
