// A plugin for QEMU that is called for every instruction and every memory access, as slalom's tap is: the
// other side of bench/beside_qemu. Debian has no header for plugins, so what is used of it is declared here.
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

enum { kNoRegisters = 0, kReadAndWrite = 3 };

extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
extern struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
extern unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
extern bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                                  void (*)(qemu_plugin_id_t, struct qemu_plugin_tb*));
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn*, void (*)(unsigned, void*), int,
                                                   void*);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn*,
                                             void (*)(unsigned, qemu_plugin_meminfo_t, uint64_t, void*), int,
                                             int, void*);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void*), void*);

EXPORT int qemu_plugin_version = 1;

static uint64_t instructions, accesses, checksum;

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void* unused) {
  (void)cpu, (void)unused;
  ++accesses;
  checksum ^= address + 2 * qemu_plugin_mem_size_shift(info) + qemu_plugin_mem_is_store(info);
}

static void on_instruction(unsigned cpu, void* unused) {
  (void)cpu, (void)unused;
  ++instructions;
}

static void on_block(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
  (void)id;
  const size_t count = qemu_plugin_tb_n_insns(block);
  for (size_t i = 0; i < count; ++i) {
    struct qemu_plugin_insn* one = qemu_plugin_tb_get_insn(block, i);
    qemu_plugin_register_vcpu_mem_cb(one, on_access, kNoRegisters, kReadAndWrite, NULL);
    qemu_plugin_register_vcpu_insn_exec_cb(one, on_instruction, kNoRegisters, NULL);
  }
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void* unused) {
  (void)id, (void)unused;
  fprintf(stderr, "%" PRIu64 " instructions, %" PRIu64 " accesses, checksum %016" PRIx64 "\n", instructions,
          accesses, checksum);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int count, char** arguments) {
  (void)info, (void)count, (void)arguments;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
  qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
  return 0;
}
