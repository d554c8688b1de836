// Reports on the scenes, compared with tests/golden/reports/. The name of a file determines its contents:
//
//   <scene>.<width>[.colour][.ascii][.everything].txt     a report
//   <scene>.trace.txt                                     the trace
//
// To add one, create an empty file with the name. SLALOM_UPDATE_GOLDEN=1 rewrites all files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "report/trace_text.h"
#include "support/source_dir.h"
#include "unit/report/scene.h"

namespace slalom::test {
namespace {

std::filesystem::path golden_directory() {
  return std::filesystem::path(source_dir()) / "tests/golden/reports";
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string make(const std::vector<std::string>& parts) {
  Scene scene = scenes().at(parts.at(0))();
  if (parts.at(1) == "trace") {
    std::ostringstream out;
    print_trace(out, scene.log, scene.names);
    return out.str();
  }
  scene.options.width = std::stoul(parts.at(1));
  for (size_t i = 2; i + 1 < parts.size(); ++i) {
    if (parts[i] == "colour") {
      scene.options.colour = true;
    } else if (parts[i] == "ascii") {
      scene.options.ascii = true;
    } else if (parts[i] == "everything") {
      scene.options.detail = TextOptions::Detail::Everything;
    } else {
      ADD_FAILURE() << "no variant is called " << parts[i];
    }
  }
  return text_report(scene.finding, scene.log, scene.names, scene.options);
}

TEST(Golden, EveryFileIsWhatIsMadeNow) {
  const bool update = std::getenv("SLALOM_UPDATE_GOLDEN") != nullptr;
  std::set<std::string> seen;
  for (const auto& entry : std::filesystem::directory_iterator(golden_directory())) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const auto parts = split(name, '.');
    ASSERT_TRUE(parts.size() >= 3 && scenes().contains(parts[0]) && parts.back() == "txt");
    seen.insert(parts[0]);
    const std::string made = make(parts);
    if (update) std::ofstream(entry.path(), std::ios::binary) << made;
    EXPECT_EQ(made, read(entry.path()));
  }
  for (const auto& [name, scene] : scenes())
    EXPECT_TRUE(seen.contains(name)) << name << " has no golden file";
}

}  // namespace
}  // namespace slalom::test
