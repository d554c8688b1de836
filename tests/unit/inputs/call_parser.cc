// The readable form of system calls: its meaning, its errors, and round trips.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/rng.h"
#include "inputs/call_program.h"
#include "inputs/image.h"
#include "inputs/system_calls.h"

namespace slalom {
namespace {

CallProgram parsed(const std::string& text) {
  Result<CallProgram> program = parse_calls(text, "x.toml", 10);
  CHECK(program.ok(), "{}", program.ok() ? "" : program.error().message);
  return *std::move(program);
}
std::string refused(const std::string& text) {
  const Result<CallProgram> program = parse_calls(text, "x.toml", 10);
  return program.ok() ? "nothing" : program.error().message;
}

// A second implementation of guest/flow.c. Its calls only record their arguments.
struct Traced {
  std::vector<std::vector<uint64_t>> calls;
  std::vector<uint8_t> data;
};
constexpr uint64_t kBase = 0x10000000;
Traced trace(const CallProgram& program, const std::vector<int64_t>& results = {}) {
  Traced traced{.data = program.data};
  const auto value_of = [&](const Operand& operand) {
    uint64_t value = operand.value;
    if (operand.kind == Operand::Kind::Result) value = static_cast<uint64_t>(results.at(value));
    if (operand.kind == Operand::Kind::Pointer) value += kBase;
    if (operand.kind == Operand::Kind::Load) {
      uint64_t loaded = 0;
      for (unsigned i = 0; i < operand.size; ++i) loaded |= uint64_t{traced.data.at(value + i)} << (8 * i);
      const bool negative = operand.is_signed && (loaded >> (8 * operand.size - 1)) != 0;
      value = negative && operand.size < 8 ? loaded | ~uint64_t{0} << (8 * operand.size) : loaded;
    }
    return value + static_cast<uint64_t>(int64_t{operand.addend});
  };
  for (const CallStep& step : program.steps) {
    if (step.kind == CallStep::Kind::Store) {
      const uint64_t value = value_of(step.operands[0]);
      for (unsigned i = 0; i < step.size; ++i)
        traced.data.at(step.number + i) = static_cast<uint8_t>(value >> (8 * i));
      continue;
    }
    std::vector<uint64_t> call = {step.number};
    for (unsigned i = 0; i < step.size; ++i) call.push_back(value_of(step.operands[i]));
    traced.calls.push_back(std::move(call));
  }
  return traced;
}
std::string data_at(const Traced& traced, uint64_t pointer, size_t size) {
  const auto begin = traced.data.begin() + static_cast<ptrdiff_t>(pointer - kBase);
  return {begin, begin + static_cast<ptrdiff_t>(size)};
}
using Call = std::vector<uint64_t>;

TEST(CallParser, NamesFlagsAndResults) {
  const Traced traced = trace(parsed("fd = open(\"/tmp/a\", O_RDWR|O_CREAT, 0644)\n"
                                     "lseek(fd, -3, SEEK_END)  # from its end\n"
                                     "dup2(fd, fd + 7); close(fd)\n"
                                     "mmap(0, 1 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS,\n"
                                     "     -1, 0)\n"),
                              {5, 0, 0, 0, 0});
  ASSERT_EQ(traced.calls.size(), 5u);
  EXPECT_EQ(traced.calls[0], (Call{SYS_open, kBase, O_RDWR | O_CREAT, 0644}));
  EXPECT_EQ(data_at(traced, kBase, 7), std::string("/tmp/a\0", 7));
  EXPECT_EQ(traced.calls[1], (Call{SYS_lseek, 5, ~uint64_t{2}, SEEK_END}));
  EXPECT_EQ(traced.calls[2], (Call{SYS_dup2, 5, 12}));
  EXPECT_EQ(traced.calls[3], (Call{SYS_close, 5}));
  EXPECT_EQ(traced.calls[4],
            (Call{SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0}));
}

TEST(CallParser, WhatCallsWriteCanBeUsed) {
  const CallProgram program =
      parsed("pipe2(&p, O_NONBLOCK)\nwrite(p[1], \"abc\", 3)\nread(p.u16[1], &p, p.i8[2])\n");
  CallProgram written = program;
  const std::string pipe("\x01\x00\x02\xff\xff\xff\xff\xff", 8);
  std::copy(pipe.begin(), pipe.end(), written.data.begin());
  const Traced traced = trace(written);
  EXPECT_EQ(traced.calls[1], (Call{SYS_write, ~uint64_t{0}, kBase + 256, 3}));
  EXPECT_EQ(traced.calls[2], (Call{SYS_read, 0xff02, kBase, 2}));
}

TEST(CallParser, StructuresAreLaidOutAsWritten) {
  const Traced traced =
      trace(parsed("s = socket(AF_INET, SOCK_STREAM, 0)\n"
                   "bind(s, {u16 AF_INET, u16be 80, u32be 0x7f000001, zero(8)}, 16)\n"
                   "epoll_ctl(9, EPOLL_CTL_ADD, s, {u32 EPOLLIN, i32 s, u32 0})\n"
                   "text = \"hello\"\n"
                   "writev(s, {ptr text + 1, u64 4, ptr {u8 1, \"x\\x02\"}, u64 3}, 2)\n"
                   "ioctl(s, SIOCGIFFLAGS, {text(16, \"lo\"), u64be 0x0102030405060708})\n"),
            {0x1234, 0, 0, 0, 0});
  ASSERT_EQ(traced.calls.size(), 5u);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(80);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(data_at(traced, traced.calls[1][2], 16),
            std::string(reinterpret_cast<const char*>(&address), sizeof address));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = 0x1234;
  EXPECT_EQ(data_at(traced, traced.calls[2][4], 12),
            std::string(reinterpret_cast<const char*>(&event), sizeof event));
  const std::string vector = data_at(traced, traced.calls[3][2], 32);
  uint64_t words[4];
  std::memcpy(words, vector.data(), sizeof words);
  EXPECT_EQ(data_at(traced, words[0], words[1]), "ello");
  EXPECT_EQ(data_at(traced, words[2], words[3]), std::string("\x01x\x02", 3));
  EXPECT_EQ(data_at(traced, traced.calls[4][3], 24),
            std::string("lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\3\4\5\6\7\10", 24));
}

TEST(CallParser, SourcesAreKept) {
  const CallProgram program = parsed("\nfd = open(\"/a\",\n   0)  # why\n\n close( fd )\n");
  EXPECT_EQ(program.sources,
            (std::vector<CallProgram::Source>{{"fd = open(\"/a\",\n   0)", 11}, {"close( fd )", 14}}));
}

TEST(CallParser, MistakesAreNamedWithTheirPlace) {
  EXPECT_EQ(refused("getpid()\n  opne(\"/a\")"),
            "x.toml:11:3: unknown system call `opne` (did you mean open?)");
  EXPECT_EQ(refused("x = open(\"/a\", O_RDWRR)"),
            "x.toml:10:16: unknown name `O_RDWRR` (did you mean O_RDWR?)");
  EXPECT_EQ(refused("fd = dup(1)\nclose(fdd)"), "x.toml:11:7: unknown name `fdd`; names so far: fd");
  EXPECT_EQ(refused("close(1"), "x.toml:10:8: expected `,` between two arguments, not end of line");
  EXPECT_EQ(refused("close(1) close(2)"),
            "x.toml:10:10: unexpected `close` after the call: each call has a line of its own");
  EXPECT_EQ(refused("dup2(1, 2, 3, 4, 5, 6, 7)"), "x.toml:10:24: a system call has at most six arguments");
  EXPECT_EQ(refused("write(1, \"abc\\q\", 3)"),
            "x.toml:10:10: a text has \\q: it may have \\n \\t \\r \\0 \\a \\b \\e \\f \\v \\\\ \\\" \\' and "
            "\\xNN");
  EXPECT_EQ(refused("write(1, \"abc, 3)"), "x.toml:10:10: the text does not end on its line");
  EXPECT_EQ(refused("close(0x1g)"), "x.toml:10:7: 0x1g is no number: write 10, 0x1f, 0644 or 0b101");
  EXPECT_EQ(refused("close(99999999999999999999)"),
            "x.toml:10:7: 99999999999999999999 does not fit into 64 bits");
  EXPECT_EQ(refused("close(dup(1))"),
            "x.toml:10:7: a call cannot be an argument: name its result on a line of its own, x = dup(...)");
  EXPECT_EQ(refused("close($)"),
            "x.toml:10:7: what is '$' to mean? A line is a call, such as fd = open(\"/tmp/a\", O_RDWR)");
  EXPECT_EQ(refused("pipe(&p)\nclose(p[64])"), "x.toml:11:9: this lies outside the data");
  EXPECT_EQ(refused("fd = dup(1)\nclose(fd[0])"), "x.toml:11:7: `fd` is a number: it has no elements");
  EXPECT_EQ(refused("fd = dup(1)\nclose(fd * 2)"),
            "x.toml:11:10: only + and - a number can be done to what is not known beforehand");
  EXPECT_EQ(refused("O_RDWR = dup(1)"), "x.toml:10:1: `O_RDWR` has a meaning already: choose another name");
  EXPECT_EQ(refused("read(0, buf(0), 1)"), "x.toml:10:13: the size of a buffer must be a number above 0");
  EXPECT_EQ(refused("read(0, buf(300000), 1)"),
            "x.toml:10:13: too much data: a list of calls has at most 256 KiB");
  EXPECT_EQ(refused("fd = dup(1)\nbind(1, {u16be fd}, 2)"),
            "x.toml:11:16: a field of type u16be must be known beforehand");
  EXPECT_NE(refused("bind(1, {AF_INET}, 2)").find("x.toml:10:10: expected a field, not `AF_INET`: a type"),
            std::string::npos);
  EXPECT_EQ(refused("close(" + std::string(100, '(') + "1"),
            "x.toml:10:39: too many brackets within each other");
  std::string many;
  for (uint32_t i = 0; i <= kMaxCallSteps; ++i) many += "getpid()\n";
  EXPECT_EQ(refused(many), "x.toml:522:1: too long: a list has at most 512 calls and stores");
}

TEST(CallParser, AnyTextIsRefusedOrRuns) {
  // Pieces of the language in any order: nothing may crash, and an accepted program can be encoded.
  const std::string pieces[] = {"open", "(",       ")",    "{",      "}",        "\"a\"",  "1",     ",",
                                "&p",   "p",       "[",    "]",      "u16 ",     "\n",     "store", "|",
                                "+",    "-",       "x",    "= ",     "~",        "buf(8)", ".",     "u64",
                                "ptr ", "zero(3)", "load", "sizeof", "getpid()", "x = ",   "read(", "'a'"};
  Rng rng(1, 0);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (uint64_t k = 0, n = 1 + rng.below(12); k < n; ++k) text += pieces[rng.below(std::size(pieces))];
    const Result<CallProgram> program = parse_calls(text, "x", 1);
    if (!program.ok()) continue;
    ++accepted;
    const Result<CallProgram> again = decode_image(encode_image(*program));
    ASSERT_TRUE(again.ok()) << text << again.error().message;
  }
  EXPECT_GT(accepted, 50);
}

constexpr const char* kEverything = R"(
fd = open("/tmp/a\n\"q\"", O_RDWR|O_CREAT, 0644)
pipe2(&p, O_NONBLOCK)
write(p[1], "abc", 3)
b = buf(5000)
read(p[0], b + 16, sizeof(b) - 16)
writev(fd - 1, {ptr b, u64 4, ptr "x", u64 p.u64[1]}, 2)
store(u32, b + 12, fd + 100000)
lseek(fd, -5, SEEK_SET)
ioctl(fd, 0x80041272, {"\x00\xff\x01", zero(100)})
read(load(u8, b + 4999), &q(32), -1)
)";

TEST(CallText, TextBytesAndTextAgain) {
  const CallProgram program = parsed(kEverything);
  const std::vector<uint8_t> image = encode_image(program);
  const Result<CallProgram> decoded = decode_image(image);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->steps, program.steps);
  EXPECT_EQ(decoded->data, program.data);
  EXPECT_EQ(decoded->objects, program.objects);
  const std::string text = to_text(*decoded);
  const CallProgram again = parsed(text);
  EXPECT_EQ(encode_image(again), image) << text;
  EXPECT_EQ(to_text(again), text);
  // The text is what a person would write.
  EXPECT_NE(text.find("d0 = \"/tmp/a\\x0a\\\"q\\\"\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("r0 = open(d0, 66, 420)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("r4 = writev(r0 - 1, "), std::string::npos) << text;
}

TEST(CallImage, DamagedOnesAreRefused) {
  const std::vector<uint8_t> image = encode_image(parsed(kEverything));
  EXPECT_FALSE(decode_image({}).ok());
  int refusals = 0, cases = 0;
  for (size_t at = 0; at < std::min<size_t>(image.size(), 1400); ++at)
    for (const uint8_t flip : {0x01, 0x80, 0xff}) {
      std::vector<uint8_t> damaged = image;
      damaged[at] ^= flip;
      ++cases;
      const Result<CallProgram> program = decode_image(damaged);
      if (!program.ok())
        ++refusals;
      else
        EXPECT_EQ(encode_image(*program), damaged) << at;  // another program, without loss
    }
  EXPECT_GT(refusals, cases / 3);
  for (size_t size = 0; size < image.size(); size += 37)
    EXPECT_FALSE(decode_image(std::span(image).first(size)).ok()) << size;
}

// The largest allowed value of each field, and that value plus one.
TEST(CallImage, FieldsThatLeadOutOfTheProgramAreRefused) {
  constexpr size_t kHeader = 48, kStep = 8 + 16 * 6, kOperands = 8, kValue = 8;
  const CallProgram program = parsed("fd = getpid()\nread(fd, &b(16), load(u32, b))\n");
  const std::vector<uint8_t> image = encode_image(program);
  const auto decodes = [&](size_t step, size_t field, uint16_t value) {
    std::vector<uint8_t> changed = image;
    changed[kHeader + step * kStep + field] = static_cast<uint8_t>(value);
    changed[kHeader + step * kStep + field + 1] = static_cast<uint8_t>(value >> 8);
    return decode_image(changed).ok();
  };
  ASSERT_EQ(program.data.size(), 16u);
  const auto operand = [](size_t number) { return kOperands + 16 * number + kValue; };
  EXPECT_TRUE(decodes(1, operand(0), 0));  // the result of the first call
  EXPECT_FALSE(decodes(1, operand(0), 1));
  EXPECT_TRUE(decodes(1, operand(2), 12));  // four bytes of sixteen
  EXPECT_FALSE(decodes(1, operand(2), 13));
  EXPECT_TRUE(decodes(0, 4, kMaxSystemCall));
  EXPECT_FALSE(decodes(0, 4, kMaxSystemCall + 1));
  EXPECT_FALSE(decodes(0, operand(0), 1));  // of an argument that the call does not have
  EXPECT_FALSE(decodes(1, operand(5), 1));
}

TEST(CallImage, ResultsAreTakenApart) {
  const CallProgram program = parsed("getpid()\nread(0, &b(16), 16)\n");
  std::vector<uint8_t> bytes(16 + 16);
  bytes[0] = 42;
  std::fill(bytes.begin() + 8, bytes.begin() + 16, 0xff);
  bytes[16] = 7;
  const Result<CallResults> results = decode_results(program, bytes);
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->values, (std::vector<int64_t>{42, -1}));
  EXPECT_EQ(results->data.at(0), 7);
  EXPECT_EQ(results->data.size(), 16u);
  bytes.pop_back();
  EXPECT_FALSE(decode_results(program, bytes).ok());
}

TEST(SystemCalls, TheTablesAreThoseOfTheHeaders) {
  EXPECT_EQ(system_call_number("read"), 0u);
  EXPECT_EQ(system_call_number("rename"), unsigned{SYS_rename});
  EXPECT_EQ(system_call_number("futex_waitv"), 449u);
  EXPECT_EQ(system_call_number("mseal"), 462u);
  EXPECT_EQ(system_call_name(SYS_io_uring_setup), "io_uring_setup");
  EXPECT_EQ(system_call_name(400), "");
  unsigned calls = 0;
  for (uint32_t number = 0; number <= kMaxSystemCall; ++number) {
    const std::string_view name = system_call_name(number);
    if (name.empty()) continue;
    ++calls;
    EXPECT_EQ(system_call_number(name), number);
  }
  EXPECT_EQ(calls, 381u);
  // One constant of each kind: a table in wrong order would miss some.
  const std::pair<const char*, int64_t> constants[] = {{"O_CLOEXEC", O_CLOEXEC},
                                                       {"AF_UNIX", AF_UNIX},
                                                       {"EPOLL_CTL_DEL", EPOLL_CTL_DEL},
                                                       {"MAP_SHARED", MAP_SHARED},
                                                       {"ENOENT", ENOENT},
                                                       {"AT_FDCWD", AT_FDCWD},
                                                       {"FUTEX_WAKE", 1},
                                                       {"IN_MODIFY", 2},
                                                       {"MS_REMOUNT", 32},
                                                       {"LOOP_CTL_GET_FREE", 0x4c82},
                                                       {"SIGUSR1", 10},
                                                       {"CLOCK_MONOTONIC", 1},
                                                       {"BTRFS_IOC_SYNC", 0x9408},
                                                       {"F_SETLK", F_SETLK},
                                                       {"SOL_SOCKET", SOL_SOCKET},
                                                       {"TIOCSTI", 0x5412},
                                                       {"IPC_CREAT", 01000},
                                                       {"XATTR_CREATE", 1},
                                                       {"RENAME_NOREPLACE", 1},
                                                       {"PR_SET_NAME", 15},
                                                       {"MADV_DONTNEED", MADV_DONTNEED},
                                                       {"IORING_OP_READV", 1},
                                                       {"STATX_ALL", 0xfff},
                                                       {"CLONE_NEWUSER", 0x10000000}};
  for (const auto& [name, value] : constants) EXPECT_EQ(linux_constant(name), value) << name;
  EXPECT_EQ(linux_constant("O_NOTHING"), std::nullopt);
}

TEST(SystemCalls, ResultsInWords) {
  EXPECT_EQ(describe_result(0), "0");
  EXPECT_EQ(describe_result(3), "3");
  EXPECT_EQ(describe_result(-2), "-ENOENT");
  EXPECT_EQ(describe_result(-11), "-EAGAIN");
  EXPECT_EQ(describe_result(-95), "-EOPNOTSUPP");
  EXPECT_EQ(describe_result(-4000), "-4000");
  EXPECT_EQ(describe_result(0x7f0000001000), "0x7f0000001000");
  EXPECT_EQ(describe_result(-5000), "0xffffffffffffec78");
}

std::string bytes_of(const CallProgram& program, size_t object) {
  const DataObject& at = program.objects.at(object);
  return {program.data.begin() + at.offset, program.data.begin() + at.offset + at.size};
}
template <typename Plain>
std::string raw(const Plain& plain) {
  return {reinterpret_cast<const char*>(&plain), sizeof plain};
}

TEST(CallParser, StructuresOfHeadersByName) {
  const CallProgram program = parsed(
      "bind(3, sockaddr_in{sin_family: AF_INET, sin_port: 80, sin_addr: 0x7f000001}, 16)\n"
      "ioctl(3, SIOCSIFFLAGS, ifreq{ifr_name: \"lo\", ifr_flags: -1})\n"
      "connect(3, sockaddr_in(\"127.0.0.1\", 80), 16)\n"
      "ioctl(3, SIOCGIFINDEX, &i(ifreq))\nclose(i.ifr_ifindex + sizeof(ifreq) + ifreq.ifr_flags)\n");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(80);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(bytes_of(program, 0), raw(address));
  EXPECT_EQ(bytes_of(program, 1),
            std::string("lo", 2) + std::string(14, '\0') + "\xff\xff" + std::string(22, '\0'));
  EXPECT_EQ(bytes_of(program, 2), raw(address));
  EXPECT_EQ(program.objects.at(3).size, 40u);
  const Operand& index = program.steps.back().operands[0];
  EXPECT_EQ(index.kind, Operand::Kind::Load);
  EXPECT_EQ(index.value, program.objects[3].offset + 16);
  EXPECT_EQ(index.addend, 40 + 16);
}

TEST(CallParser, WrongStructuresAreRefused) {
  EXPECT_EQ(refused("ioctl(3, 1, ifrq{ifr_flags: 1})"),
            "x.toml:10:13: unknown structure `ifrq` (did you mean ifreq?)");
  EXPECT_EQ(refused("ioctl(3, 1, ifreq{ifr_flag: 1})"),
            "x.toml:10:19: ifreq has no field `ifr_flag` (did you mean ifr_flags, ifru_flags?)");
  EXPECT_EQ(refused("ioctl(3, 1, ifreq{ifr_name: \"a name of 17 bytes\"})"),
            "x.toml:10:29: ifr_name has room for 16 bytes, and these are 18");
  EXPECT_EQ(refused("ioctl(3, 1, ifreq{ifr_flags: 65536})"),
            "x.toml:10:30: ifr_flags has 2 bytes, and 65536 does not fit into them");
  EXPECT_EQ(refused("bind(3, sockaddr_in(\"localhost\", 80), 16)"),
            "x.toml:10:21: \"localhost\" is no address such as \"127.0.0.1\"");
}

TEST(CallParser, NetlinkMessagesAreAligned) {
  const CallProgram program = parsed("send(3, newlink(\"d0\", \"dummy\"))\n");
  const std::string message = bytes_of(program, 0);
  // Header 16, ifinfomsg 16, name 4 + 3 + 1, link info 4 + 4 + 6 + 2.
  ASSERT_EQ(message.size(), 56u);
  EXPECT_EQ(message.substr(0, 6), std::string("\x38\0\0\0\x10\0", 6));
  EXPECT_EQ(message.substr(32, 8), std::string("\x07\0\x03\0d0\0\0", 8));
  EXPECT_EQ(message.substr(40, 14), std::string("\x10\0\x12\x80\x0a\0\x01\0dummy\0", 14));
  EXPECT_EQ(program.steps[0].number, static_cast<uint32_t>(SYS_sendto));
  EXPECT_EQ(program.steps[0].operands[2].value, 56u);
}

TEST(CallParser, ChosenNumbersAreBounded) {
  const CallProgram program = parsed("write(1, \"abc\", choose(3))\n");
  ASSERT_EQ(program.steps.size(), 2u);
  EXPECT_EQ(program.steps[0].kind, CallStep::Kind::Choose);
  EXPECT_EQ(program.steps[1].operands[2].kind, Operand::Kind::Load);
  EXPECT_EQ(refused("write(1, \"abc\", choose(0))"),
            "x.toml:10:24: choose() needs a number from 1 to 1024: it gives one below that");
}

TEST(CallParser, MappedMemoryIsCopied) {
  const CallProgram program =
      parsed("a = mmap(0, 4096, 3, 34, -1, 0)\nstore(u32, a + 8, 5)\nclose(load(u8, a))\n");
  const auto decoded = decode_image(encode_image(program));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->steps, program.steps);
  ASSERT_EQ(program.steps.size(), 5u);
  EXPECT_EQ(program.steps[1].kind, CallStep::Kind::Store);
  EXPECT_EQ(program.steps[2].kind, CallStep::Kind::Write);
  EXPECT_EQ(program.steps[2].operands[0].addend, 8);
  EXPECT_EQ(program.steps[3].kind, CallStep::Kind::Read);
}

TEST(CallParser, PreparedNamesReferToTheirLists) {
  const auto all = parse_named_calls("pipe(&p)\nq = msgget(0, 0)\n", "x.toml", 1, {});
  ASSERT_TRUE(all.ok());
  const auto flow = parse_named_calls("e = dup(p[0])\n", "x.toml", 5, {.of_all = &*all});
  ASSERT_TRUE(flow.ok()) << flow.error().message;
  const auto own =
      parse_named_calls("close(e)\nread(p[1], &p, q)\n", "x.toml", 9, {.of_flow = &*flow, .of_all = &*all});
  ASSERT_TRUE(own.ok()) << own.error().message;
  const std::vector<CallStep>& steps = own->program.steps;
  EXPECT_EQ(steps[0].operands[0].list, CallList::OfFlow);
  EXPECT_EQ(steps[1].operands[0].list, CallList::OfAll);
  EXPECT_EQ(steps[1].operands[1].list, CallList::OfAll);
  EXPECT_EQ(steps[1].operands[2].kind, Operand::Kind::Result);
  EXPECT_EQ(steps[1].operands[2].value, 1u);
  EXPECT_TRUE(decode_image(encode_image(own->program)).ok());
  CallProgram lost = own->program;
  lost.prepared = {};
  EXPECT_FALSE(decode_image(encode_image(lost)).ok());
  const auto again = parse_named_calls("q = getpid()\n", "x.toml", 9, {.of_all = &*all});
  EXPECT_EQ(again.error().message, "x.toml:9:1: `q` is prepared already: choose another name");
}

}  // namespace
}  // namespace slalom
