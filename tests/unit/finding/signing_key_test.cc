#include "finding/signing_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <numeric>

#include "base/container.h"
#include "base/file.h"
#include "finding/capsule.h"
#include "unit/base/temporary_directory.h"

namespace slalom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

SigningKey::Bytes counting_bytes() {
  SigningKey::Bytes bytes;
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  return bytes;
}

std::span<const uint8_t> as_bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string hex_of(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// The test has a configuration folder of its own.
class Key : public testing::Test {
 protected:
  Key() { setenv("XDG_CONFIG_HOME", directory_.path().c_str(), 1); }
  ~Key() override { unsetenv("XDG_CONFIG_HOME"); }
  std::string refusal() {
    const auto key = SigningKey::load_or_make();
    return key.ok() ? "" : key.error().message;
  }

  TemporaryDirectory directory_;
  fs::path path_ = directory_ / "slalom/capsule.key";
};

// Python: hmac.new(bytes(range(32)), b"slalom capsule" + b"contents", "sha256").hexdigest()
TEST(SigningKey, SignsAsOthersDo) {
  const SigningKey key(counting_bytes());
  EXPECT_EQ(hex_of(key.sign(as_bytes_of("contents"))),
            "54b1fef3df3eee0d567869e6293dee99316259fb218b0f84a75bb6a7fd9b3002");
  EXPECT_EQ(hex_of(key.sign({})), "6846dcac620c285ff18b246d86f8775546ea8313360b37840e5513ae2c4cae2d");
}

TEST(SigningKey, KnowsItsOwnSignaturesOnly) {
  const SigningKey key(counting_bytes());
  const std::vector<uint8_t> signature = key.sign(as_bytes_of("contents"));
  EXPECT_TRUE(key.signed_by_it(as_bytes_of("contents"), signature));
  EXPECT_FALSE(key.signed_by_it(as_bytes_of("Contents"), signature));
  EXPECT_FALSE(key.signed_by_it(as_bytes_of("contents"), {}));
  for (size_t i = 0; i < signature.size(); ++i) {
    std::vector<uint8_t> other = signature;
    other[i] ^= 1;
    EXPECT_FALSE(key.signed_by_it(as_bytes_of("contents"), other));
    EXPECT_FALSE(key.signed_by_it(as_bytes_of("contents"), std::span(signature).first(i)));
  }
}

TEST_F(Key, IsMadeOnceForItsUserAlone) {
  EXPECT_FALSE(SigningKey::load().ok());
  EXPECT_FALSE(fs::exists(path_));  // loading makes no file
  const auto made = SigningKey::load_or_make();
  ASSERT_TRUE(made.ok()) << made.error().message;
  struct stat status = {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(status.st_size, 32);
  ASSERT_EQ(::stat(path_.parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_EQ(std::distance(fs::directory_iterator(path_.parent_path()), {}), 1);
  const auto again = SigningKey::load_or_make();
  EXPECT_EQ(made->sign(as_bytes_of("x")), again->sign(as_bytes_of("x")));
}

TEST_F(Key, ProcessesThatMakeItAtOnceGetTheSame) {
  constexpr int kProcesses = 16;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto key = SigningKey::load_or_make();
      std::ofstream(directory_ / fmt::format("child-{}", i))
          << (key.ok() ? hex_of(key->sign({})) : key.error().message);
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  const std::string kept = hex_of(SigningKey::load()->sign({}));
  for (int i = 0; i < kProcesses; ++i) {
    const auto file = read_file(directory_ / fmt::format("child-{}", i));
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(std::string(file->begin(), file->end()), kept);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(path_.parent_path()), {}), 1);
}

TEST_F(Key, ThatOthersMayKnowIsRefused) {
  ASSERT_TRUE(SigningKey::load_or_make().ok());
  for (const mode_t mode : {0640u, 0604u, 0620u, 0666u}) {
    ::chmod(path_.c_str(), mode);
    EXPECT_THAT(refusal(), HasSubstr("can be read or changed by other users"));
  }
  ::chmod(path_.c_str(), 0600);
  EXPECT_EQ(refusal(), "");
  if (::geteuid() != 0) return;  // only root can give a file to another user
  ASSERT_EQ(::chown(path_.c_str(), 1234, 1234), 0);
  EXPECT_THAT(refusal(), HasSubstr("belongs to another user (number 1234)"));
}

TEST_F(Key, IsNotMadeInAFolderOfAnotherUser) {
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(directory_.path().c_str(), 1234, 1234), 0);
  EXPECT_THAT(refusal(), HasSubstr("belongs to another user"));
  EXPECT_FALSE(fs::exists(path_.parent_path()));
}

TEST_F(Key, ThatIsDamagedIsRefusedAndStays) {
  fs::create_directories(path_.parent_path());
  for (const size_t size : {0, 31, 33}) {
    ASSERT_TRUE(write_file(path_, std::string(size, 'x')).ok());
    ::chmod(path_.c_str(), 0600);
    EXPECT_THAT(refusal(), HasSubstr("is damaged: remove it"));
    EXPECT_EQ(fs::file_size(path_), size);
  }
  fs::remove(path_);
  fs::create_symlink(directory_ / "elsewhere", path_);
  EXPECT_THAT(refusal(), HasSubstr("cannot read the signing key"));
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("is not a regular file"));
}

TEST_F(Key, WithoutAPlaceForItThereIsNone) {
  ASSERT_TRUE(write_file(directory_ / "slalom", "a file").ok());
  EXPECT_THAT(refusal(), HasSubstr((directory_ / "slalom").string()));
  setenv("XDG_CONFIG_HOME", "relative", 1);
  const std::string home = getenv("HOME") == nullptr ? "" : getenv("HOME");
  setenv("HOME", directory_.path().c_str(), 1);
  EXPECT_EQ(*SigningKey::path(), directory_ / ".config/slalom/capsule.key");
  unsetenv("HOME");
  EXPECT_THAT(refusal(), HasSubstr("set HOME"));
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

TEST(Capsule, ASignatureIsOfAllItsContents) {
  Finding finding;
  finding.verdict.title = "a bug";
  finding.target = make_target("program", "prog", "text");
  const SigningKey key(counting_bytes());
  SigningKey::Bytes others = counting_bytes();
  others[31] ^= 1;
  const auto file = pack_capsule(finding, &key);
  const auto capsule = parse_signed_capsule(*file);
  ASSERT_TRUE(capsule.ok()) << capsule.error().message;
  EXPECT_EQ(capsule->finding, finding);
  EXPECT_TRUE(capsule->signed_by(key));
  EXPECT_FALSE(capsule->signed_by(SigningKey(others)));
  EXPECT_FALSE(parse_signed_capsule(*pack_capsule(finding, nullptr))->signed_by(key));
  // An attacker who changes the contents can keep the signature, but it does not match them.
  std::vector<uint8_t> changed = capsule->contents;
  size_t accepted = 0;
  for (uint8_t& byte : changed) {
    byte ^= 1;
    ByteWriter payload;
    payload.text({reinterpret_cast<const char*>(changed.data()), changed.size()});
    payload.text({reinterpret_cast<const char*>(capsule->signature.data()), capsule->signature.size()});
    const auto forged = parse_signed_capsule(*pack_container(FileKind::Capsule, payload.bytes()));
    accepted += forged.ok();
    EXPECT_FALSE(forged.ok() && forged->signed_by(key));
    byte ^= 1;
  }
  EXPECT_GT(accepted, 0u);
}

}  // namespace
}  // namespace slalom
