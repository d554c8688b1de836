// DetectorSet: several detectors, chosen by name, as one Observer.
//
// The names are those of the catalogue; `--detectors a,b` takes them. A saved state can only be restored into
// a set of the same detectors.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "detect/core/detector.h"
#include "trace/facilities.h"

namespace slalom {

class DetectorSet : public Observer {
 public:
  void add(std::unique_ptr<Detector> detector);

  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;
  void reset() override;
  std::unique_ptr<State> save() const override;
  void restore(const State& state) override;
  void harvest(std::vector<Verdict>& verdicts) override;

 private:
  std::vector<std::unique_ptr<Detector>> detectors_;
  std::vector<Detector*> access_users_;  // the elements of detectors_ that want accesses
  Step last_;
};

struct DetectorInfo {
  enum class For : uint8_t { Everything, Programs, Kernels };
  std::string_view name;
  std::string_view about;
  bool by_default;
  For what;               // Programs includes toys
  Facilities needs = {};  // without them, it does not find all that it can
};
std::vector<DetectorInfo> detector_catalogue();

// Returns every detector that is on by default. `names` must outlive the set.
std::unique_ptr<DetectorSet> all_detectors(const Names& names);
// `list` is a comma-separated list of names. "default" and "all" stand for groups of program detectors.
// "kernel" stands for the kernel detectors that are on by default.
Result<std::unique_ptr<DetectorSet>> select_detectors(const Names& names, std::string_view list);
Result<Facilities> needs_of(std::string_view list);  // of all these detectors
Result<bool> selects(std::string_view list, std::string_view name);

}  // namespace slalom
