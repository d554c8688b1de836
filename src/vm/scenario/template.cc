#include "vm/scenario/template.h"

namespace slalom::vm {
namespace {

constexpr std::string_view kTemplate =
    R"toml(# A kernel test: flows of system calls that run concurrently, under every interesting interleaving.
#
#   slalom explore {name}.toml
#
# docs/howto-kernel-test.md explains all of it.

name = "{name}"
about = "a writer and a reader at one named pipe"

# debian:5.10, debian:6.1, debian:6.12, debian:sid (slalom kernel get NAME), each also with a flavour (debian:6.1:rt) or
# a build (debian:5.10=5.10.218-1); or your own bzImage or vmlinux.
kernel = "debian:6.1"

# debug_info = "vmlinux"    # of this kernel, with debug information: reports then show source lines
# cpus = 2                  # default: one for each flow, at least two
# memory = "256M"           # default
# append = "slub_debug=FZ"  # more for the kernel's command line

# Loaded first: modules of the kernel by name, or files of your own, with their parameters.
# modules = ["loop max_loop=4", "mine.ko size=3"]

# Files of yours that go into the guest.
# files = ["data.img:/root/data.img"]

# Commands for the guest's shell (busybox), before the flows start. Each must succeed.
setup = ["mkfifo /tmp/pipe"]

# A command after the flows have ended. A status other than 0 is a failure.
check = "test -p /tmp/pipe"

# A search may order the accesses of a part only, and then try all their orders (--strategy dpor):
# scope = ["module:mine", "function:pipe_*"]
# Without a scope it switches wherever flows communicate, but not inside the kernel's scheduler, unless:
# scheduler = true
# It decides about these CPUs and interrupts only:
# contexts = ["cpu0", "cpu1", "timer", "ipi", "device"]

# Detectors that the test needs besides the usual ones (slalom explore --help lists all):
# detectors = ["kernel-leak"]

# Each flow is pinned to a CPU of its own. All start at the same moment.
[[flow]]
name = "writer"
calls = '''
fd = open("/tmp/pipe", O_RDWR | O_NONBLOCK)     # the result gets a name
write(fd, "abc", 3)
close(fd)
'''

[[flow]]
name = "reader"
calls = '''
fd = open("/tmp/pipe", O_RDWR | O_NONBLOCK)
read(fd, &got(16), 16)                          # &got(16): 16 bytes for what is read
fcntl(fd, F_SETPIPE_SZ, 4096)
close(fd)
'''

# Calls that run before the flows start: for one flow (prepare = '''...''' above its calls), or once for all
# flows (prepare = '''...''' above the first [[flow]]). The flows can use the results.
# Flows of one process are threads, which share descriptors and memory:
# [process]
# flows = ["writer", "reader"]

# A flow can also be a program of yours that includes slalom.h:
# [[flow]]
# source = "flow.c"         # compiled for each run; or program = "FILE"

# What the search must find (remove it if you do not know): nothing, here. slalom explore --expect checks it.
[expect]
kinds = []

# [limits]                  # in instructions
# preparation = 4_000_000_000
# execution = 20_000_000    # of one run of the flows
# check = 1_000_000_000
)toml";

constexpr std::string_view kNet =
    R"toml(# Two threads use one socket. Calls and words: docs/howto-kernel-test.md
#
#   slalom explore {name}.toml --dry     what each call returns, without a search
#   slalom explore {name}.toml

name = "{name}"
about = "a datagram is sent and received while another thread shuts the socket down"
kernel = "debian:6.1"
setup = ["ifconfig lo up"]

# Once, before the flows start. Both flows use the socket.
prepare = '''
s = socket(AF_INET, SOCK_DGRAM, 0)
bind(s, sockaddr_in("127.0.0.1", 8080), 16)
connect(s, sockaddr_in("127.0.0.1", 8080), 16)
'''

[[flow]]
name = "sender"
calls = '''
send(s, "abc")
recvfrom(s, &got(16), 16, MSG_DONTWAIT, 0, 0)
'''

[[flow]]
name = "other"
calls = '''
shutdown(s, SHUT_RD)
setsockopt(s, SOL_SOCKET, SO_RCVBUF, {u32 4096}, 4)
'''

[process]
flows = ["sender", "other"]                       # threads: one table of descriptors
)toml";

constexpr std::string_view kFs =
    R"toml(# Two processes use one folder. Calls and words: docs/howto-kernel-test.md
# slalom new fs-test generates such calls, on a file system of your choice, with its checker afterwards.
#
#   slalom explore {name}.toml --dry     what each call returns, without a search
#   slalom explore {name}.toml

name = "{name}"
about = "a file is renamed and removed while another process writes to it"
kernel = "debian:6.1"
setup = ["mkdir /tmp/d"]                          # /tmp is a tmpfs
check = "test -d /tmp/d"                          # after the flows; a status other than 0 is a failure

# Once, before the flows start. Both processes inherit the descriptors.
prepare = '''
d = open("/tmp/d", O_RDONLY | O_DIRECTORY)
fd = openat(d, "a", O_RDWR | O_CREAT, 0600)
'''

[[flow]]
name = "writer"
calls = '''
write(fd, "abcd", 4)
ftruncate(fd, 2)
'''

[[flow]]
name = "mover"
calls = '''
renameat(d, "a", d, "b")
unlinkat(d, "b", 0)
fstat(fd, &s(stat))
'''
)toml";

constexpr std::string_view kIpc =
    R"toml(# Two threads use one futex and one message queue. Calls and words: docs/howto-kernel-test.md
#
#   slalom explore {name}.toml --dry     what each call returns, without a search
#   slalom explore {name}.toml

name = "{name}"
about = "a message is sent while another thread receives one"
kernel = "debian:6.1"

# Once, before the flows start. Both flows use the queue and the word.
prepare = '''
q = msgget(IPC_PRIVATE, 0600 | IPC_CREAT)
word = buf(4)
'''

[[flow]]
name = "sender"
calls = '''
msgsnd(q, {i64 1, "abc"}, 3, IPC_NOWAIT)
store(u32, word, 1)
futex(word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1)
'''

[[flow]]
name = "receiver"
calls = '''
msgrcv(q, &got(16), 8, 0, IPC_NOWAIT)
futex(word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, 0)
'''

[process]
flows = ["sender", "receiver"]                    # threads: one memory
)toml";

constexpr std::string_view kIoUring =
    R"toml(# Two threads use one io_uring. Calls and words: docs/howto-kernel-test.md
#
#   slalom explore {name}.toml --dry     what each call returns, without a search
#   slalom explore {name}.toml

name = "{name}"
about = "a request is cancelled while it completes"
kernel = "debian:6.1"

# Once, before the flows start: a ring with a request that waits for the pipe.
prepare = '''
pipe2(&p, O_NONBLOCK)
bytes = buf(8)
ring = io_uring(4)
submit(ring, io_uring_sqe{opcode: IORING_OP_READ, fd: p[0], addr: bytes, len: 1, user_data: 7})
'''

[[flow]]
name = "writer"
calls = "write(p[1], \"x\", 1)"                   # the request completes

[[flow]]
name = "canceller"
calls = '''
io_uring_register(ring, IORING_REGISTER_SYNC_CANCEL, io_uring_sync_cancel_reg{addr: 7, fd: -1}, 1)
'''

[process]
flows = ["writer", "canceller"]
)toml";

std::string_view text_like(KernelTestLike like) {
  switch (like) {
    case KernelTestLike::Any:
      return kTemplate;
    case KernelTestLike::Net:
      return kNet;
    case KernelTestLike::Fs:
      return kFs;
    case KernelTestLike::Ipc:
      return kIpc;
    case KernelTestLike::IoUring:
      return kIoUring;
  }
  return {};
}

}  // namespace

std::string kernel_test_template(std::string_view name, KernelTestLike like) {
  std::string text(text_like(like));
  constexpr std::string_view kName = "{name}";
  for (size_t at = 0; (at = text.find(kName, at)) != std::string::npos; at += name.size())
    text.replace(at, kName.size(), name);
  return text;
}

}  // namespace slalom::vm
