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

}  // namespace

std::string kernel_test_template(std::string_view name) {
  std::string text(kTemplate);
  constexpr std::string_view kName = "{name}";
  for (size_t at = 0; (at = text.find(kName, at)) != std::string::npos; at += name.size())
    text.replace(at, kName.size(), name);
  return text;
}

}  // namespace slalom::vm
