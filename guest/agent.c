// slalom's agent: the first program in the guest (/init of its initramfs).
//
// It mounts what every program expects (proc, sys, dev, tmp), loads the modules that the initramfs lists,
// runs one command, and switches the machine off. The kernel's command line gives the command as
// slalom.run="..."; without it the agent starts a shell on the console. If slalom has a kernel test for this
// machine, the agent follows its plan instead (test.c).
//
// Plain C and static, so that it needs only the kernel.
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MODULE_LIST "/etc/slalom/modules"
#define COMPRESSED_FILE 4  // MODULE_INIT_COMPRESSED_FILE

void complain(const char* what, const char* about) {
  const int code = errno;
  fprintf(stderr, "init: %s %s: %s\n", what, about, strerror(code));
}

static void attach(const char* type, const char* place, unsigned long flags, const char* options) {
  if (mkdir(place, 0755) != 0 && errno != EEXIST) complain("cannot make", place);
  // The kernel may lack the file system, or may have mounted it already.
  if (mount(type, place, type, flags, options) != 0 && errno != ENODEV && errno != EBUSY)
    complain("cannot mount", place);
}

static void attach_all(void) {
  attach("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
  attach("sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
  attach("devtmpfs", "/dev", MS_NOSUID, "mode=0755");
  attach("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "mode=0620,ptmxmode=0666");
  attach("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
  attach("tmpfs", "/tmp", MS_NOSUID | MS_NODEV, "mode=1777");
  attach("tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=0755");
}

const char* load_module(char* line) {
  char* parameters = strchr(line, ' ');
  if (parameters != NULL) *parameters++ = '\0';
  const int file = open(line, O_RDONLY | O_CLOEXEC);
  if (file < 0) return "cannot read the module";
  const size_t length = strlen(line);
  const int flags = length > 3 && strcmp(line + length - 3, ".ko") != 0 ? COMPRESSED_FILE : 0;
  const long status = syscall(SYS_finit_module, file, parameters != NULL ? parameters : "", flags);
  const int code = errno;
  close(file);
  errno = code;
  return status == 0 || code == EEXIST ? NULL : "the kernel does not load the module";
}

static void load_modules(void) {
  FILE* list = fopen(MODULE_LIST, "re");
  if (list == NULL) return;
  char* line = NULL;
  size_t room = 0;
  while (getline(&line, &room, list) > 0) {
    line[strcspn(line, "\n")] = '\0';
    if (line[0] != '/') continue;
    const char* trouble = load_module(line);
    if (trouble != NULL) complain(trouble, line);
  }
  free(line);
  fclose(list);
}

// The value of `name` on the kernel's command line, or NULL. Quotes around the value, or around name and
// value, are removed, because the kernel splits its line in the same way.
static char* kernel_option(const char* name) {
  static char line[8192];
  const int file = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return NULL;
  const ssize_t size = read(file, line, sizeof line - 1);
  close(file);
  if (size <= 0) return NULL;
  line[size] = '\0';
  const size_t length = strlen(name);
  for (char* at = line; *at != '\0';) {
    while (*at == ' ' || *at == '\n') ++at;
    char* word = at;
    int quoted = 0;
    char* end = at;
    for (; *at != '\0' && (quoted || (*at != ' ' && *at != '\n')); ++at) {
      if (*at == '"')
        quoted = !quoted;
      else
        *end++ = *at;
    }
    const int last = *at == '\0';
    if (!last) ++at;
    *end = '\0';
    if (strncmp(word, name, length) == 0 && word[length] == '=') return word + length + 1;
    if (last) break;
  }
  return NULL;
}

// Makes the console the terminal of this session, so that Ctrl-C and job control work. /dev/console itself
// cannot be a session's terminal.
static void take_terminal(void) {
  char name[64] = "/dev/";
  const int active = open("/sys/class/tty/console/active", O_RDONLY | O_CLOEXEC);
  if (active < 0) return;
  const ssize_t size = read(active, name + 5, sizeof name - 6);
  close(active);
  if (size <= 0) return;
  name[5 + strcspn(name + 5, "\n")] = '\0';
  const char* last = strrchr(name + 5, ' ');  // the last of several consoles is the main one
  if (last != NULL) memmove(name + 5, last + 1, strlen(last));
  setsid();
  const int terminal = open(name, O_RDWR);
  if (terminal < 0) return;
  ioctl(terminal, TIOCSCTTY, 1);
  for (int i = 0; i < 3; ++i) dup2(terminal, i);
  if (terminal > 2) close(terminal);
}

void run_shell(const char* command) {
  take_terminal();
  if (chdir("/root") != 0 && chdir("/") != 0) _exit(127);
  if (command != NULL)
    execl("/bin/sh", "sh", "-c", command, (char*)NULL);
  else
    execl("/bin/sh", "-sh", (char*)NULL);
  complain("cannot run", "/bin/sh");
  _exit(127);
}

int status_of(pid_t child) {
  // The first process inherits all orphans. Collect them here, too.
  for (;;) {
    int status = 0;
    const pid_t ended = wait(&status);
    if (ended < 0 && errno != EINTR) return 127;
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

int run(const char* command) {
  const pid_t child = fork();
  if (child < 0) {
    complain("cannot run", command != NULL ? command : "a shell");
    return 127;
  }
  if (child == 0) run_shell(command);
  return status_of(child);
}

int main(int count, char** arguments) {
  if (count == 2 && strcmp(arguments[0], FLOW_NAME) == 0) return run_flow(atol(arguments[1]));
  if (getpid() != 1) {
    fputs("init: this is the first program of a slalom guest, not a command\n", stderr);
    return 2;
  }
  attach_all();
  setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
  setenv("HOME", "/root", 1);
  setenv("TERM", "vt100", 1);
  load_modules();
  run_test();
  const char* command = kernel_option("slalom.run");
  const int status = run(command);
  if (command != NULL && status != 0) fprintf(stderr, "init: the command ended with status %d\n", status);
  fflush(NULL);
  sync();
  reboot(RB_POWER_OFF);
  complain("cannot switch off:", "reboot");
  for (;;) pause();
}
