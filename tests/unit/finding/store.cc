#include "finding/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "finding/capsule.h"
#include "unit/base/temporary_directory.h"

namespace slalom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Finding bug(std::string title, size_t switches, std::string content = "text") {
  Finding finding;
  finding.verdict.title = std::move(title);
  finding.target = make_target("toy", "bank", std::move(content));
  finding.schedule.switches.resize(switches);
  finding.occurrences = 1;
  return finding;
}

std::string text_of(const fs::path& path) {
  const auto bytes = read_file(path);
  return bytes.ok() ? std::string(bytes->begin(), bytes->end()) : bytes.error().message;
}

class Store : public testing::Test {
 protected:
  fs::path add(const Finding& finding, const std::string& report) {
    const auto path = store().add(finding, report);
    EXPECT_TRUE(path.ok()) << path.error().message;
    return path.ok() ? *path : fs::path();
  }
  FindingStore store() { return *FindingStore::open(root_); }

  TemporaryDirectory directory_;
  fs::path root_ = directory_ / "new/findings";
};

TEST_F(Store, AddedFindingIsThereInAllItsForms) {
  const Finding finding = bug("deadlock", 3);
  const fs::path capsule = add(finding, "the report\n");
  EXPECT_EQ(capsule, root_ / signature(finding) / "capsule.slalom");
  EXPECT_EQ(*load_capsule(capsule), finding);
  EXPECT_EQ(text_of(capsule.parent_path() / "report.txt"), "the report\n");
  const auto json = nlohmann::json::parse(text_of(capsule.parent_path() / "finding.json"));
  EXPECT_EQ(json.at("title"), "deadlock");
  EXPECT_EQ(json.at("capsule"), "capsule.slalom");
}

TEST_F(Store, TheSmallerScheduleStaysWithItsReport) {
  const fs::path capsule = add(bug("deadlock", 5), "five");
  const fs::path report = capsule.parent_path() / "report.txt";
  add(bug("deadlock", 3), "three");
  EXPECT_EQ(text_of(report), "three");
  add(bug("deadlock", 4), "four");
  add(bug("deadlock", 3), "another three");
  EXPECT_EQ(text_of(report), "three");
  const auto kept = load_capsule(capsule);
  ASSERT_TRUE(kept.ok()) << kept.error().message;
  EXPECT_EQ(kept->schedule.switches.size(), 3u);
  EXPECT_EQ(kept->occurrences, 4u);
  const auto json = nlohmann::json::parse(text_of(capsule.parent_path() / "finding.json"));
  EXPECT_EQ(json.at("occurrences"), 4);
  EXPECT_EQ(json.at("schedule").at("switches").size(), 3u);
}

TEST_F(Store, OfAsManySwitchesTheOneWithFewerDataChoicesStays) {
  const auto with_choices = [](size_t choices) {
    Finding finding = bug("deadlock", 3);
    finding.schedule.data.assign(choices, {finding.schedule.switches.back().to, 1, 0, 1});
    return finding;
  };
  const fs::path capsule = add(with_choices(2), "two");
  add(with_choices(1), "one");
  EXPECT_EQ(text_of(capsule.parent_path() / "report.txt"), "one");
  // Not even a better proof counts.
  Finding proven = with_choices(2);
  proven.minimality = Minimality::Minimum;
  add(proven, "two again");
  EXPECT_EQ(text_of(capsule.parent_path() / "report.txt"), "one");
  EXPECT_EQ(load_capsule(capsule)->schedule.data.size(), 1u);
}

TEST_F(Store, OfEqualSchedulesTheBetterProvenStays) {
  const fs::path capsule = add(bug("deadlock", 3), "unshrunk");
  Finding proven = bug("deadlock", 3);
  proven.minimality = Minimality::Minimum;
  add(proven, "minimum");
  add(bug("deadlock", 3), "unshrunk again");
  EXPECT_EQ(load_capsule(capsule)->minimality, Minimality::Minimum);
  EXPECT_EQ(text_of(capsule.parent_path() / "report.txt"), "minimum");
}

TEST_F(Store, DifferentBugsHaveDifferentFolders) {
  add(bug("one", 1), "");
  add(bug("two", 1), "");
  const auto entries = store().list();
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_LT(entries->at(0).signature, entries->at(1).signature);
  for (const auto& entry : *entries) {
    ASSERT_TRUE(entry.finding.ok());
    EXPECT_EQ(signature(*entry.finding), entry.signature);
    EXPECT_EQ(entry.directory, root_ / entry.signature);
  }
}

// Editing the target, and undoing the edit, loses neither version's finding nor its count.
TEST_F(Store, FindingsOfAChangedTargetStayBeside) {
  const Finding old_bug = bug("deadlock", 2, "old text");
  const Finding new_bug = bug("deadlock", 6, "new text");
  const fs::path capsule = add(old_bug, "old");
  add(new_bug, "new");
  EXPECT_EQ(*load_capsule(capsule), new_bug);
  EXPECT_EQ(text_of(capsule.parent_path() / "report.txt"), "new");
  const fs::path beside = capsule.parent_path() / ("capsule." + old_bug.target.hash + ".slalom");
  EXPECT_EQ(*load_capsule(beside), old_bug);

  add(bug("deadlock", 9, "old text"), "old again");
  const auto back = load_capsule(capsule);
  EXPECT_EQ(back->schedule, old_bug.schedule);
  EXPECT_EQ(back->occurrences, 2u);
  EXPECT_EQ(*load_capsule(capsule.parent_path() / ("capsule." + new_bug.target.hash + ".slalom")), new_bug);
  EXPECT_EQ(store().list()->size(), 1u);
}

TEST_F(Store, ADamagedCapsuleIsListedAsSuchAndKeptWhenReplaced) {
  const fs::path capsule = add(bug("deadlock", 2), "report");
  for (int round = 1; round <= 2; ++round) {
    ASSERT_TRUE(write_file(capsule, fmt::format("damaged {}", round)).ok());
    const auto entries = store().list();
    ASSERT_EQ(entries->size(), 1u);
    EXPECT_THAT(entries->at(0).finding.error().message, HasSubstr("not a slalom file"));
    add(bug("deadlock", 3), "new report");
    EXPECT_EQ(*load_capsule(capsule), bug("deadlock", 3));
    EXPECT_EQ(text_of(capsule.parent_path() / fmt::format("capsule.damaged-{}.slalom", round)),
              fmt::format("damaged {}", round));
  }
}

TEST_F(Store, AFolderThatHoldsAnotherFindingIsNotOverwritten) {
  const Finding one = bug("one", 1);
  const Finding two = bug("two", 1);
  const fs::path capsule = root_ / signature(one) / "capsule.slalom";
  fs::create_directories(capsule.parent_path());
  ASSERT_TRUE(save_capsule(capsule, two, nullptr).ok());
  const auto added = store().add(one, "");
  ASSERT_FALSE(added.ok());
  EXPECT_THAT(added.error().message, HasSubstr("holds another finding (\"two\"); move that folder away"));
  EXPECT_EQ(*load_capsule(capsule), two);
}

TEST_F(Store, ACapsuleOfSomebodyElseNeverStaysAndIsNeverSigned) {
  const auto key = std::make_shared<const SigningKey>(SigningKey::Bytes{1, 2, 3});
  const SigningKey others(SigningKey::Bytes{4, 5, 6});
  const fs::path capsule = root_ / signature(bug("deadlock", 1)) / "capsule.slalom";
  for (const SigningKey* theirs : {static_cast<const SigningKey*>(nullptr), &others}) {
    fs::remove_all(root_);
    fs::create_directories(capsule.parent_path());
    ASSERT_TRUE(save_capsule(capsule, bug("deadlock", 1), theirs).ok());
    auto mine = FindingStore::open(root_, key);
    ASSERT_TRUE(mine->add(bug("deadlock", 3), "mine").ok());
    EXPECT_TRUE(open_capsule(capsule)->signed_by(*key));
    EXPECT_EQ(load_capsule(capsule)->schedule.switches.size(), 3u);
    EXPECT_EQ(load_capsule(capsule)->occurrences, 2u);
    // The user's own capsule stays, as always.
    ASSERT_TRUE(mine->add(bug("deadlock", 5), "mine again").ok());
    EXPECT_EQ(load_capsule(capsule)->schedule.switches.size(), 3u);
    EXPECT_TRUE(open_capsule(capsule)->signed_by(*key));
  }
}

TEST_F(Store, AnEarlierCapsuleThatIsPutAsideKeepsItsSignature) {
  const auto key = std::make_shared<const SigningKey>(SigningKey::Bytes{1, 2, 3});
  const SigningKey others(SigningKey::Bytes{4, 5, 6});
  const Finding before = bug("deadlock", 1, "before");
  const fs::path capsule = root_ / signature(before) / "capsule.slalom";
  fs::create_directories(capsule.parent_path());
  ASSERT_TRUE(save_capsule(capsule, before, &others).ok());
  ASSERT_TRUE(FindingStore::open(root_, key)->add(bug("deadlock", 1, "now"), "").ok());
  const auto aside =
      open_capsule(capsule.parent_path() / fmt::format("capsule.{}.slalom", before.target.hash));
  ASSERT_TRUE(aside.ok()) << aside.error().message;
  EXPECT_TRUE(aside->signed_by(others));
  EXPECT_FALSE(aside->signed_by(*key));
}

TEST_F(Store, OtherThingsInTheFolderAreIgnored) {
  add(bug("one", 1), "");
  ASSERT_TRUE(write_file(root_ / "notes.txt", "mine").ok());
  fs::create_directories(root_ / "empty");
  EXPECT_EQ(store().list()->size(), 1u);
}

TEST_F(Store, AFolderThatDoesNotExistCannotBeListed) {
  const auto listed = list_findings(directory_ / "none");
  ASSERT_FALSE(listed.ok());
  EXPECT_THAT(listed.error().message, HasSubstr("none: No such file or directory; check the path"));
  EXPECT_FALSE(fs::exists(directory_ / "none"));
}

TEST_F(Store, PlacesThatCannotBeWrittenAreNamed) {
  ASSERT_TRUE(write_file(directory_ / "file", "").ok());
  for (const fs::path& root : {directory_ / "file", directory_ / "file/below", fs::path("/proc/self")}) {
    const auto opened = FindingStore::open(root);
    ASSERT_FALSE(opened.ok()) << root;
    EXPECT_THAT(opened.error().message, HasSubstr("cannot write findings to " + root.string()));
    EXPECT_THAT(opened.error().message, HasSubstr("choose another directory with --out"));
  }
}

TEST_F(Store, SeveralProcessesLoseNothing) {
  constexpr int kProcesses = 4;
  constexpr int kFindings = 10;
  store();
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool ok = true;
      for (int i = 0; i < kFindings; ++i)
        ok = store().add(bug("deadlock", static_cast<size_t>(50 - 10 * process - i)), "").ok() && ok;
      ::_exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const auto entries = store().list();
  ASSERT_EQ(entries->size(), 1u);
  EXPECT_EQ(entries->at(0).finding->occurrences, static_cast<uint64_t>(kProcesses * kFindings));
  EXPECT_EQ(entries->at(0).finding->schedule.switches.size(), 50u - 10 * (kProcesses - 1) - (kFindings - 1));
}

}  // namespace
}  // namespace slalom
