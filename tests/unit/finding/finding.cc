#include "finding/finding.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "finding/capsule.h"
#include "finding/finding_json.h"
#include "finding/signing_key.h"
#include "support/source_dir.h"
#include "unit/base/temporary_directory.h"
#include "unit/finding/random_finding.h"
#include "unit/trace/golden.h"

namespace slalom {
namespace {

// Every field has a different value.
Finding sample() {
  const AgentId main = AgentId::initial(0);
  const AgentId worker = main.child(0);
  Finding finding;
  finding.verdict = {BugKind::DataRace,
                     Severity::Race,
                     "data race on balance: worker:3 and worker:4",
                     "Both write.",
                     {{Step{12}, worker, Place{0x400010}, "balance = 1"}}};
  finding.target = make_target("toy", "bank", "name = \"bank\"\n", {{"workers", 2}, {"limit", -1}});
  finding.policy = {ChoicePolicy::Where::Sync, {Place{16}, Place{32}}, {{worker, 4}}};
  finding.max_steps = 20'000;
  finding.schedule = {{{{}, 0, main}, {main, 2, worker}}, {{worker, 3, 0, 1}}, 0xabcdef};
  finding.original = {{{{}, 0, main}, {main, 2, worker}, {worker, 9, main}}, {}, 0x123456};
  finding.minimality = Minimality::Minimal;
  finding.constraints = {{{main, 2, Place{16}, "a"}, {worker, 1, Place{32}, "b"}}};
  finding.strategy = "pct";
  finding.seed = 42;
  finding.execution = 17;
  finding.occurrences = 3;
  finding.replays_tried = 10;
  finding.replays_same = 9;
  finding.state_hash = 0xfedcba9876543210;
  return finding;
}

TEST(Finding, SignatureDependsOnTargetNameAndTitleOnly) {
  const Finding finding = sample();
  EXPECT_EQ(signature(finding), "7b991e09f4e8fbea");  // stores on disk depend on it
  Finding other = finding;
  other.schedule = other.original;
  other.seed = 1;
  other.verdict.detail = "different words";
  other.target = make_target("toy", "bank", "another text");
  EXPECT_EQ(signature(other), signature(finding));
  other = finding;
  other.verdict.title += "!";
  EXPECT_NE(signature(other), signature(finding));
  other = finding;
  other.target.name = "shop";
  EXPECT_NE(signature(other), signature(finding));
}

TEST(Finding, TargetHashCoversEverything) {
  const TargetId base = make_target("toy", "bank", "text", {{"n", 1}});
  EXPECT_EQ(base.hash.size(), 16u);
  EXPECT_EQ(base, make_target("toy", "bank", "text", {{"n", 1}}));
  for (const TargetId& other :
       {make_target("vm", "bank", "text", {{"n", 1}}), make_target("toy", "shop", "text", {{"n", 1}}),
        make_target("toy", "bank", "texts", {{"n", 1}}), make_target("toy", "bank", "text", {{"n", 2}}),
        make_target("toy", "bank", "text", {{"m", 1}}), make_target("toy", "bank", "text"),
        make_target("toyb", "ank", "text", {{"n", 1}})})
    EXPECT_NE(other.hash, base.hash);
}

TEST(Capsule, EverythingComesBack) {
  for (uint64_t i = 0; i < 200; ++i) {
    Rng rng(31, i);
    const Finding finding = random_finding(rng);
    const auto file = pack_capsule(finding, nullptr);
    ASSERT_TRUE(file.ok());
    const auto back = parse_capsule(*file);
    ASSERT_TRUE(back.ok()) << back.error().message;
    ASSERT_EQ(*back, finding);
  }
}

TEST(Capsule, EveryCutOfThePayloadIsRefused) {
  ByteWriter out;
  encode(out, sample());
  for (size_t size = 0; size < out.bytes().size(); ++size) {
    if (size + 8 == out.bytes().size()) continue;  // without the state hash, as in version 1
    ByteWriter payload;
    payload.text({reinterpret_cast<const char*>(out.bytes().data()), size});
    payload.text("");
    const auto file = pack_container(FileKind::Capsule, payload.bytes());
    EXPECT_EQ(parse_capsule(*file).error().message, "malformed: its contents are no capsule; write it again");
  }
}

TEST(Capsule, SavedIsLoaded) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(save_capsule(directory / "c.slalom", sample(), nullptr).ok());
  const auto loaded = load_capsule(directory / "c.slalom");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(*loaded, sample());
}

TEST(Capsule, Version1HasNoStateHash) {
  const auto loaded =
      load_capsule(std::filesystem::path(source_dir()) / "tests/golden/formats/v1-capsule.slalom");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  Finding expected = sample();
  expected.state_hash = 0;
  EXPECT_EQ(*loaded, expected);
}

std::filesystem::path golden_format(const char* name) {
  return std::filesystem::path(source_dir()) / "tests/golden/formats" / name;
}

TEST(Capsule, Version2HasNoErrors) {
  expect_golden("v2-capsule.slalom", FileKind::Capsule, sample());
  EXPECT_EQ(load_capsule(golden_format("v2-capsule.slalom")).value(), sample());
}

Finding with_errors() {
  Finding finding = sample();
  const AgentId main = AgentId::initial(0);
  finding.surroundings = "{}";
  finding.schedule.errors = {
      {{main, 3, "open", 2, true, 0x1234, "a", Place{16}}, {main.child(0), 0, "getaddrinfo", -2}}, 7};
  finding.original.errors = {{{main, 3, "open", 2, true, 0x1234, "a", Place{16}}}};
  return finding;
}

TEST(Capsule, Version3) {
  expect_golden("v3-capsule.slalom", FileKind::Capsule, with_errors());
  EXPECT_EQ(load_capsule(golden_format("v3-capsule.slalom")).value(), with_errors());
  EXPECT_TRUE(open_capsule(golden_format("v3-capsule.slalom"))->signature.empty());
}

TEST(Capsule, Version4IsSigned) {
  const SigningKey key(SigningKey::Bytes{1, 2, 3});
  const auto file = pack_capsule(with_errors(), &key);
  const auto golden = read_file(golden_format("v4-capsule.slalom"));
  std::string hex;
  for (const uint8_t byte : *file) hex += fmt::format("{:02x}", byte);
  ASSERT_TRUE(golden.ok()) << golden.error().message << "\nIts bytes, for `xxd -r -p`: " << hex;
  const auto capsule = parse_signed_capsule(*golden);
  ASSERT_TRUE(capsule.ok()) << capsule.error().message;
  EXPECT_EQ(capsule->finding, with_errors());
  EXPECT_TRUE(capsule->signed_by(key));
  EXPECT_EQ(*unpack_container(*golden, FileKind::Capsule), *unpack_container(*file, FileKind::Capsule))
      << "the writer changed: raise the version of this kind";
}

TEST(Capsule, Version4KnowsWhichBoundsWereExcluded) {
  Finding finding = with_errors();
  finding.excluded = 2;
  EXPECT_EQ(parse_capsule(*pack_capsule(finding, nullptr)).value(), finding);
}

TEST(Capsule, Version5KnowsWatchedAccesses) {
  Finding finding = with_errors();
  finding.policy.accesses = {{.first = 0x1000, .last = 0x1003, .reads = false}, {.place = Place{0x400010}}};
  const auto file = pack_capsule(finding, nullptr);
  const auto golden = read_file(golden_format("v5-capsule.slalom"));
  std::string hex;
  for (const uint8_t byte : *file) hex += fmt::format("{:02x}", byte);
  ASSERT_TRUE(golden.ok()) << golden.error().message << "\nIts bytes, for `xxd -r -p`: " << hex;
  EXPECT_EQ(parse_capsule(*golden).value(), finding);
  EXPECT_EQ(*golden, *file) << "the writer changed: raise the version of this kind";
}

TEST(Capsule, ErrorsOutOfOrderAreRefused) {
  Finding finding = with_errors();
  std::swap(finding.schedule.errors->returns[0], finding.schedule.errors->returns[1]);
  EXPECT_FALSE(parse_capsule(*pack_capsule(finding, nullptr)).ok());
}

TEST(FindingJson, FieldsAreThoseOfTheDocument) {
  Finding finding = sample();
  finding.excluded = 1;
  const nlohmann::json json = finding_json(finding, "there/capsule.slalom");
  EXPECT_EQ(json, nlohmann::json::parse(R"({
    "title": "data race on balance: worker:3 and worker:4",
    "kind": "data-race",
    "severity": "race",
    "detail": "Both write.",
    "evidence": [{"step": 12, "agent": "1.1", "pc": "0x400010", "text": "balance = 1"}],
    "signature": "7b991e09f4e8fbea",
    "capsule": "there/capsule.slalom",
    "schedule": {
      "switches": [{"from": "-", "from_ops": 0, "to": "1"}, {"from": "1", "from_ops": 2, "to": "1.1"}],
      "data": [{"agent": "1.1", "ops": 3, "ordinal": 0, "value": 1}],
      "digest": "0xabcdef"
    },
    "minimality": "minimal",
    "excluded": 1,
    "constraints": [{"before": {"agent": "1", "ops": 2, "pc": "0x10", "text": "a"},
                     "after": {"agent": "1.1", "ops": 1, "pc": "0x20", "text": "b"}}],
    "replayed": "9/10",
    "strategy": "pct",
    "seed": 42,
    "execution": 17,
    "occurrences": 3,
    "max_steps": 20000,
    "target": {"kind": "toy", "name": "bank", "hash": "653a5177d8d23e52", "params": {"workers": 2, "limit": -1}},
    "state_hash": "0xfedcba9876543210"
  })"));
}

TEST(FindingJson, ListsStayListsWhenEmptyOrOfOneItem) {
  const nlohmann::json json = finding_json(Finding{}, "");
  for (const char* field : {"evidence", "constraints"}) EXPECT_TRUE(json.at(field).is_array()) << field;
  EXPECT_TRUE(json.at("schedule").at("switches").is_array());
  EXPECT_TRUE(json.at("schedule").at("data").is_array());
  EXPECT_TRUE(json.at("target").at("params").is_object());
}

TEST(FindingJson, TextThatIsNotUtf8IsReplaced) {
  Finding finding = sample();
  finding.verdict.title = "bad \xff byte";
  const std::string text = json_text(finding_json(finding, "c"));
  EXPECT_EQ(nlohmann::json::parse(text).at("title"), "bad \uFFFD byte");
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace slalom
