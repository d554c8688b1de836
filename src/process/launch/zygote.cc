#include "process/launch/zygote.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/log.h"
#include "process/launch/asleep.h"
#include "process/launch/descriptor.h"
#include "process/launch/exec_stop.h"
#include "process/launch/own_mount.h"
#include "process/launch/surroundings.h"

namespace slalom {
namespace {

using preload::Channel;
using preload::Phase;
using preload::Turn;

constexpr off_t kErrorBytes = 1 << 20;
constexpr off_t kOutputBytes = 64 << 20;
constexpr int kMostDescriptors = 1024;           // limit for marking descriptors one by one
constexpr long kSliceNanoseconds = 100'000'000;  // interval between two checks whether the target still lives
constexpr uint32_t kSlicesPerSecond = 10;
constexpr uint32_t kAsleepSlices = 10;  // slices in the same call after which nothing will end it
// Slices after which a bounded wait for events outside must have ended.
constexpr uint32_t kOutsideSlices = 100;

void wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void tie_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

// The data that the child needs between fork and exec, where it may not allocate memory.
struct Launch {
  std::vector<char*> arguments, environment;
  int channel, errors, output, input, trouble;
  int core;
  pid_t parent;
  const OwnMount* folder;  // nullptr: stay in slalom's folder
};

[[noreturn]] void become(const Launch& launch, const char* path) {
  setpgid(0, 0);  // Ctrl-C is for slalom
  // Mounts the copy over the original, so that the program does not see the copy's name.
  const bool in_place = launch.folder != nullptr && launch.folder->show();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == launch.parent) {
    personality(static_cast<unsigned long>(personality(0xffffffff)) | ADDR_NO_RANDOMIZE);
    tie_to(launch.core);
    if (launch.folder != nullptr &&
        chdir((in_place ? launch.folder->at : launch.folder->folder).c_str()) != 0)
      _exit(126);
    dup2(launch.input, STDIN_FILENO);
    dup2(launch.output, STDOUT_FILENO);
    dup2(launch.errors, STDERR_FILENO);
    const int trouble = fcntl(launch.trouble, F_DUPFD_CLOEXEC, preload::kDescriptor + 1);
    dup2(launch.channel, preload::kDescriptor);
    if (close_range(preload::kDescriptor + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0)  // fails before Linux 5.11
      for (int other = preload::kDescriptor + 1; other < kMostDescriptors; ++other)
        fcntl(other, F_SETFD, FD_CLOEXEC);
    fcntl(preload::kDescriptor, F_SETFD, 0);
    // A signal also stops a traced process, so none may come before the parent knows that it is traced.
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    const int stops = ask_for_exec_stop() ? 1 : 0;
    if (write(trouble, &stops, sizeof stops) < 0) _exit(126);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(path, launch.arguments.data(), launch.environment.data());
    const int reason = errno;
    if (write(trouble, &reason, sizeof reason) < 0) _exit(126);
  }
  _exit(127);
}

// Reads a number that become() writes to `trouble`: whether it stops, then why the program cannot be
// executed.
bool read_number(int descriptor, int& number) {
  ssize_t got = -1;
  while ((got = read(descriptor, &number, sizeof number)) < 0 && errno == EINTR) {
  }
  return got == sizeof number;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Fixes settings that libraries derive from the machine, unless the user has set them: the number of OpenMP's
// threads, how long these spin before they wait, and random numbers that Qt takes from a processor
// instruction.
void add_settings(std::vector<std::string>& environment) {
  for (const std::string& setting :
       {fmt::format("OMP_NUM_THREADS={}", preload::kProcessors), std::string("GOMP_SPINCOUNT=0"),
        std::string("QT_NO_CPU_FEATURE=rdrnd")}) {
    const std::string name = setting.substr(0, setting.find('=') + 1);
    if (std::ranges::none_of(environment, [&](const std::string& one) { return one.starts_with(name); }))
      environment.push_back(setting);
  }
}

// The stack of main() begins below the path, the arguments and the environment. Padding their number and size
// gives main()'s stack the same addresses, whatever environment slalom is started in.
void pad(const std::string& path, const std::vector<std::string>& arguments,
         std::vector<std::string>& environment) {
  constexpr size_t kEntries = 512, kBytes = 32768;
  constexpr std::string_view kName = "SLALOM_PADDING";
  while ((arguments.size() + environment.size() + 1) % kEntries != 0)
    environment.push_back(fmt::format("{}=", kName));
  size_t bytes = path.size() + 1 + kName.size() + 2;  // with the padding's name, '=' and terminator
  for (const std::string& text : arguments) bytes += text.size() + 1;
  for (const std::string& text : environment) bytes += text.size() + 1;
  environment.push_back(fmt::format("{}={}", kName, std::string((kBytes - bytes % kBytes) % kBytes, '.')));
}

// Returns the bytes written to a file, at most `most`.
std::string beginning_of(int file, off_t most) {
  const off_t written = std::clamp<off_t>(lseek(file, 0, SEEK_CUR), 0, most);
  std::string text(static_cast<size_t>(written), '\0');
  const ssize_t got = written == 0 ? 0 : pread(file, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

bool starts_with_any(const std::string& text, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const char* prefix) { return text.rfind(prefix, 0) == 0; });
}

// Returns whether anything besides the program's threads may end a wait.
bool may_end_the_wait(const Channel& channel) {
  using preload::Uncontrolled;
  constexpr auto kOthers = static_cast<uint32_t>(Uncontrolled::Fork) |
                           static_cast<uint32_t>(Uncontrolled::Program) |
                           static_cast<uint32_t>(Uncontrolled::ForeignThread);
  return channel.waits_outside != preload::Outside::No || (channel.uncontrolled & kOthers) != 0;
}

// Returns the name that a file has for slalom. A process in a mount namespace of its own (OwnMount) has paths
// from the root of that namespace, so in a chroot they begin with the chroot's own path.
std::string path_here(const std::string& path, unsigned long long inode) {
  struct stat info = {};
  for (size_t at = 0; at != std::string::npos; at = path.find('/', at + 1))
    if (stat(path.c_str() + at, &info) == 0 && info.st_ino == inode) return path.substr(at);
  return path;
}

}  // namespace

Result<std::unique_ptr<Zygote>> Zygote::launch(const Program& program, const LaunchOptions& options) {
  std::unique_ptr<Zygote> zygote(new Zygote);
  TRY(zygote->start(program, options));
  TRY(zygote->wait_for_main(program));
  zygote->uncontrolled_ = zygote->channel_->uncontrolled;
  TRY(zygote->read_modules(program, options.library));
  DEBUG_LOG(Process, "launched {}: {} modules, on core {}", program.path, zygote->modules_.size(),
            options.core);
  for (const Module& module : zygote->modules_)
    TRACE_LOG(Process, "module {:#x}-{:#x} {}{}", module.begin, module.end, module.path,
              module.user ? " (the user's)" : "");
  return zygote;
}

Result<void> Zygote::start(const Program& program, const LaunchOptions& options) {
  if (access(options.library.c_str(), R_OK) != 0)
    return error("{} is missing: it belongs beside the slalom command; build or install slalom again",
                 options.library);
  timespec now;  // the clock that file systems use
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (!program.scratch.empty()) {
    TRY_ASSIGN(Scratch scratch, Scratch::make(program.scratch));
    scratch_.emplace(std::move(scratch));
  }
  core_ = options.core;
  patience_ = options.patience;
  interrupted_ = options.interrupted;
  Descriptor memory(memfd_create("slalom-channel", MFD_CLOEXEC));
  errors_ = memfd_create("slalom-errors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (program.is_judged()) output_ = memfd_create("slalom-output", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  Descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  int trouble[2];
  if (memory.get() < 0 || errors_ < 0 || (program.is_judged() && output_ < 0) || nothing.get() < 0 ||
      pipe2(trouble, O_CLOEXEC) != 0 || ftruncate(memory.get(), sizeof(Channel)) != 0 ||
      ftruncate(errors_, kErrorBytes) != 0 || (output_ >= 0 && ftruncate(output_, kOutputBytes) != 0))
    return error("the program cannot be started: {}", std::strerror(errno));
  Descriptor trouble_read(trouble[0]), trouble_write(trouble[1]);
  for (const int file : {errors_, output_}) fcntl(file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK);
  void* mapped = mmap(nullptr, sizeof(Channel), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) return error("there is no memory for the program: {}", std::strerror(errno));
  channel_ = static_cast<Channel*>(mapped);
  channel_->version = preload::kVersion;
  channel_->files_since =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);

  std::vector<std::string> arguments = program.arguments, environment = inherited_environment();
  add_settings(environment);
  environment.push_back("LD_PRELOAD=" + options.library);
  environment.push_back("LD_BIND_NOW=1");  // resolves symbols once instead of in every execution
  environment.push_back(fmt::format("{}=1", preload::kVariable));
  pad(program.path, arguments, environment);
  OwnMount folder;
  if (scratch_) folder = OwnMount::of(scratch_->folder(), std::filesystem::absolute(program.scratch));
  const Launch launch{pointers(arguments),
                      pointers(environment),
                      memory.get(),
                      errors_,
                      output_ >= 0 ? output_ : nothing.get(),
                      nothing.get(),
                      trouble_write.get(),
                      core_,
                      getpid(),
                      scratch_ ? &folder : nullptr};
  process_ = fork();
  if (process_ < 0) return error("the program cannot be started: {}", std::strerror(errno));
  if (process_ == 0) become(launch, program.path.c_str());
  trouble_write.reset();
  int stops = 0, reason = 0;
  if (read_number(trouble_read.get(), stops) && stops != 0) pass_exec_stop(process_);
  if (read_number(trouble_read.get(), reason))
    return error("{} cannot be executed: {}", program.path, std::strerror(reason));
  return {};
}

Result<void> Zygote::wait_for_main(const Program& program) {
  const Waited waited = wait();
  if (waited == Waited::Stopped && channel_->phase.load() == Phase::Ready) return {};
  if (waited == Waited::Interrupted) return error("interrupted before {} reached main()", program.path);
  if (waited == Waited::Silent)
    return error("{} did not reach main() within {} seconds", program.path, patience_);
  std::string output = errors();
  if (output.size() > 400) output.resize(400);
  return error("{} ended before it reached main(){}{}", program.path, output.empty() ? "" : ":\n  ", output);
}

Result<void> Zygote::read_modules(const Program& program, const std::string& library) {
  std::ifstream maps(fmt::format("/proc/{}/maps", process_));
  std::string line;
  while (std::getline(maps, line)) {
    const size_t slash = line.find('/');
    unsigned long long begin = 0, end = 0, inode = 0;
    constexpr const char* kFormat = "%llx-%llx %*s %*s %*s %llu";
    if (slash == std::string::npos || std::sscanf(line.c_str(), kFormat, &begin, &end, &inode) != 3) continue;
    std::string path = line.substr(slash);
    if (path.rfind("/memfd:slalom-channel", 0) == 0) channel_range_ = {begin, end};
    if (path.rfind("/memfd:", 0) == 0) continue;
    path = path_here(path, inode);
    if (modules_.empty() || modules_.back().path != path)
      modules_.push_back({path, begin, end});
    else
      modules_.back().end = end;
  }
  if (modules_.empty()) return error("/proc/{}/maps cannot be read; is /proc mounted?", process_);
  channel_->user_count = 0;
  for (Module& module : modules_) {
    const bool system = starts_with_any(module.path, {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"});
    module.ours = module.path == library;
    module.user = module.path == program.path || (!system && !module.ours);
    if (module.user && channel_->user_count < preload::kMostModules)
      channel_->user[channel_->user_count++] = {module.begin, module.end};
  }
  return {};
}

Zygote::~Zygote() {
  if (process_ > 0) {
    // The zygote ends the processes that its execution has started.
    if (channel_ != nullptr && channel_->phase.load() != Phase::Over &&
        channel_->phase.load() != Phase::Ready && channel_->child > 1)
      end_execution(preload::kMostAgents);
  }
  if (process_ > 0) {
    kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (channel_ != nullptr) munmap(channel_, sizeof(Channel));
  if (errors_ >= 0) close(errors_);
  if (output_ >= 0) close(output_);
}

Result<void> Zygote::fork_execution() {
  TRACE_LOG(Process, "fork an execution");
  if (scratch_) TRY(scratch_->restore());
  request(preload::Request::Execution);
  return {};
}

void Zygote::request(preload::Request what) {
  lseek(errors_, errors_before_, SEEK_SET);  // the target shares the file position
  if (output_ >= 0) lseek(output_, output_before_, SEEK_SET);
  channel_->parent_turn.store(0, std::memory_order_relaxed);
  channel_->phase.store(Phase::Running, std::memory_order_relaxed);
  channel_->zygote_turn.store(static_cast<uint32_t>(what), std::memory_order_release);
  wake(channel_->zygote_turn);
}

void Zygote::begin_set_up() {
  channel_->message[0] = 0;
  request(preload::Request::SetUp);
}

void Zygote::keep_set_up() {
  set_up_ = channel_->child;
  errors_before_ = lseek(errors_, 0, SEEK_CUR);
  if (output_ >= 0) output_before_ = lseek(output_, 0, SEEK_CUR);
}

void Zygote::end_set_up() {
  if (set_up_ <= 1) return;
  kill(set_up_, SIGKILL);
  set_up_ = -1;
  errors_before_ = output_before_ = 0;
  while (wait() == Waited::Stopped && channel_->phase.load() != Phase::Over) {
  }
}

bool Zygote::set_up_lives() const {
  return set_up_ <= 1 || kill(set_up_, 0) == 0;
}

Zygote::Waited Zygote::wait() {
  thread_local const auto this_thread = static_cast<pid_t>(syscall(SYS_gettid));
  if (this_thread != tied_thread_) {
    tie_to(core_);
    tied_thread_ = this_thread;
  }
  uint32_t slices = 0, asleep = 0, outside = 0;
  uint64_t steps = channel_->steps;
  std::string where;
  asleep_in_.clear();
  while (channel_->parent_turn.load(std::memory_order_acquire) == 0) {
    const timespec slice{0, kSliceNanoseconds};
    if (syscall(SYS_futex, &channel_->parent_turn, FUTEX_WAIT, 0, &slice, nullptr, 0) == 0 ||
        errno != ETIMEDOUT)
      continue;
    if (waitpid(process_, nullptr, WNOHANG) == process_) {
      process_ = -1;
      return Waited::Dead;
    }
    if (channel_->waits_outside == preload::Outside::Bounded && ++outside < kOutsideSlices) continue;
    // It makes progress by passing stops.
    if (std::exchange(steps, channel_->steps) != channel_->steps) slices = 0;
    const std::optional<Sleeper> sleeper = find_sleeper(channel_->child, channel_range_);
    asleep = sleeper && sleeper->where == where ? asleep + 1 : 0;
    where = sleeper ? sleeper->where : "";
    asleep_in_ = sleeper ? sleeper->what : "";
    if (asleep >= kAsleepSlices && !sleeper->limited && !may_end_the_wait(*channel_)) return Waited::Asleep;
    if (++slices >= patience_ * kSlicesPerSecond) return Waited::Silent;
    if (slices >= kSlicesPerSecond && interrupted_ != nullptr && interrupted_()) return Waited::Interrupted;
  }
  channel_->parent_turn.store(0, std::memory_order_relaxed);
  return Waited::Stopped;
}

void Zygote::let_run(uint32_t agent) {
  channel_->phase.store(Phase::Running, std::memory_order_relaxed);
  std::atomic<uint32_t>& turn = channel_->slots[agent].turn;
  turn.store(static_cast<uint32_t>(Turn::Go), std::memory_order_release);
  wake(turn);
}

void Zygote::show(uint32_t agent) {
  if (agent >= preload::kMostAgents) return;
  std::atomic<uint32_t>& turn = channel_->slots[agent].turn;
  turn.store(static_cast<uint32_t>(Turn::Show), std::memory_order_release);
  wake(turn);
}

void Zygote::end_execution(uint32_t agent) {
  if (agent < preload::kMostAgents) {
    std::atomic<uint32_t>& turn = channel_->slots[agent].turn;
    turn.store(static_cast<uint32_t>(Turn::Die), std::memory_order_release);
    wake(turn);
  } else if (channel_->child > 1) {
    kill(channel_->child, SIGKILL);
  }
  while (wait() == Waited::Stopped && channel_->phase.load() != Phase::Over) {
  }
}

std::vector<uint8_t> Zygote::memory(preload::Range range, pid_t process) const {
  std::vector<uint8_t> bytes(range.end - range.begin);
  const iovec here{bytes.data(), bytes.size()};
  const iovec there{reinterpret_cast<void*>(range.begin), bytes.size()};
  const ssize_t got = process_vm_readv(process, &here, 1, &there, 1, 0);
  if (got != static_cast<ssize_t>(bytes.size())) bytes.clear();
  return bytes;
}

std::string Zygote::errors() const {
  return beginning_of(errors_, 1 << 16);
}
std::string Zygote::output() const {
  return beginning_of(output_, kOutputBytes);
}
bool Zygote::output_is_full() const {
  return lseek(output_, 0, SEEK_CUR) >= kOutputBytes;
}

}  // namespace slalom
