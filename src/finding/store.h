// FindingStore: the folder that keeps findings, one subfolder per bug:
//
//   <root>/<signature>/capsule.slalom         the finding: the truth
//                      finding.json           the same, for other tools
//                      report.txt             for people
//                      capsule.<hash>.slalom  of earlier versions of the target (<hash>: TargetId::hash)
//                      capsule.damaged-<n>.slalom  files that could not be read: kept, never used
//
// Every file is replaced atomically, the capsule first, and a lock file serialises writers. Neither a crash
// nor several processes at once can lose a finding.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "finding/finding.h"
#include "finding/finding_json.h"
#include "finding/signing_key.h"

namespace slalom {

struct StoredFinding {
  std::string signature;
  std::filesystem::path directory;
  Result<Finding> finding;  // an error if the capsule is damaged
};
// Returns the findings in the order of signatures. Only reads, so it works on a store that cannot be written.
Result<std::vector<StoredFinding>> list_findings(const std::filesystem::path& root);

class FindingStore {
 public:
  // Creates the folder if it is missing. Fails if it cannot be written. `key` signs the capsules; nullptr
  // leaves them unsigned.
  static Result<FindingStore> open(std::filesystem::path root,
                                   std::shared_ptr<const SigningKey> key = nullptr);

  // Keeps the finding and returns the path of its capsule. When the bug is known already for this target, the
  // finding with the smaller schedule stays, with its report, and occurrences add up. With a key, a capsule
  // that was not signed with it never stays: that would sign what this user did not make. `words` are those
  // of `finding`.
  Result<std::filesystem::path> add(const Finding& finding, const std::string& report,
                                    const FindingWords& words = {});

  Result<std::vector<StoredFinding>> list() const { return list_findings(root_); }
  const std::filesystem::path& root() const { return root_; }

 private:
  FindingStore(std::filesystem::path root, std::shared_ptr<const SigningKey> key)
      : root_(std::move(root)), key_(std::move(key)) {}

  std::filesystem::path root_;
  std::shared_ptr<const SigningKey> key_;
};

}  // namespace slalom
