// Paging in each mode: two levels (4 KiB, 4 MiB) and three levels in the 32-bit program, four levels in the
// 64-bit program. Every fault with its error code and CR2, accessed and dirty bits, changed entries, accesses
// across pages.
#include "bare.h"

namespace {

constexpr word kWindow = 0x40000000, kLargeWindow = 0x40400000;  // virtual
constexpr word kFrame = 0x2000000, kOther = 0x2001000,
               kLargeFrame = 0x2400000;  // physical, also mapped one to one
constexpr unsigned P = 1, W = 2, U = 4, A = 0x20, D = 0x40, LARGE = 0x80, ALL = P | W | U;
constexpr unsigned WRITE = 2, USER = 4, FETCH = 16;  // error code, besides P

volatile word target;
word reserved_error = 9;        // QEMU does not set the present bit
unsigned modify_error = WRITE;  // QEMU reads first, and does not report the intended write

const Function kRead = [] { [[maybe_unused]] const uint32_t value = at<uint32_t>(target); };
const Function kWrite = [] { at<uint32_t>(target) = 0x1234; };
const Function kCall = [] { reinterpret_cast<Function>(target)(); };

void check_fault(const char* name, const Trap& trap, word error) {
  check_trap(name, trap, PF, error);
  check("... its CR2", trap.cr2, target);
}

// The tables of the window: the entry above its table, the table, and an entry for one large page.
template <class Entry>
struct Tables {
  Entry* upper;
  volatile Entry* leaf;
  volatile Entry* large;
  bool no_execute;  // the bit exists and is enabled

  void set(unsigned page, Entry value) const {
    leaf[page] = value;
    invalidate_page(kWindow + page * 4096);
  }
  void set_upper(Entry bits) const {
    *const_cast<volatile Entry*>(upper) = (*upper & ~Entry{0xff}) | bits;
    write_cr3(read_cr3());
  }
};

template <class Entry>
void rights(const Tables<Entry>& t) {
  const unsigned fetch = t.no_execute ? FETCH : 0;
  target = kWindow + 0x120;
  t.set(0, kFrame);
  check_fault("not present: read", attempt(kRead), 0);
  check_fault("not present: write", attempt(kWrite), WRITE);
  check_fault("not present: fetch", attempt(kCall), fetch);
  check("... at the target", attempt(kCall).ip, target);
  check_fault("not present: user read", attempt_user(kRead), USER);
  check_fault("not present: user write", attempt_user(kWrite), USER | WRITE);
  check_fault("not present: user fetch", attempt_user(kCall), USER | fetch);

  at<uint8_t>(kFrame + 0x120) = 0xc3;
  t.set(0, kFrame | P | U);
  write_cr0(read_cr0() & ~word{0x10000});
  check_trap("read-only: read", attempt(kRead), kNone);
  check_trap("read-only: fetch", attempt(kCall), kNone);
  check_fault("read-only: user write", attempt_user(kWrite), USER | WRITE | 1);
  check_trap("read-only: supervisor write without CR0.WP", attempt(kWrite), kNone);
  check("... arrives", at<uint32_t>(kFrame + 0x120), 0x1234);
  check("... and makes the page dirty", t.leaf[0] & D, D);
  write_cr0(read_cr0() | 0x10000);
  check_fault("read-only: supervisor write with CR0.WP", attempt(kWrite), WRITE | 1);

  t.set(0, kFrame | P | W);
  check_trap("supervisor page: write", attempt(kWrite), kNone);
  check_fault("supervisor page: user read", attempt_user(kRead), USER | 1);
  check_fault("supervisor page: user write", attempt_user(kWrite), USER | WRITE | 1);
  check_fault("supervisor page: user fetch", attempt_user(kCall), USER | 1 | fetch);

  t.set(0, kFrame | ALL);
  check_trap("user page: user write", attempt_user(kWrite), kNone);
  t.set_upper(P | U);
  check_fault("read-only a level above: write", attempt(kWrite), WRITE | 1);
  check_fault("read-only a level above: user write", attempt_user(kWrite), USER | WRITE | 1);
  check_trap("read-only a level above: user read", attempt_user(kRead), kNone);
  t.set_upper(P | W);
  check_fault("supervisor a level above: user read", attempt_user(kRead), USER | 1);
  t.set_upper(W | U);
  check_fault("not present a level above: read", attempt(kRead), 0);
  t.set_upper(ALL);
  check_trap("all again", attempt_user(kWrite), kNone);
}

template <class Entry>
void no_execute(const Tables<Entry>& t) {
  constexpr Entry bit = Entry{1} << (8 * sizeof(Entry) - 1);
  target = kWindow + 0x120;
  at<uint8_t>(kFrame + 0x120) = 0xc3;
  t.set(0, kFrame | ALL | bit);
  check_trap("no-execute: read", attempt_user(kRead), kNone);
  check_fault("no-execute: fetch", attempt(kCall), FETCH | 1);
  check_fault("no-execute: user fetch", attempt_user(kCall), FETCH | USER | 1);
  *t.large = kLargeFrame | ALL | LARGE | bit;
  target = kLargeWindow + 0x10;
  check_fault("no-execute large page: fetch", attempt(kCall), FETCH | 1);
  target = kWindow + 0x120;
  write_msr(0xc0000080, read_msr(0xc0000080) & ~uint64_t{0x800});
  write_cr3(read_cr3());
  check_fault("no-execute bit without EFER.NXE: reserved", attempt(kRead), reserved_error);
  check_fault("... for a fetch", attempt_user(kCall), reserved_error | USER);
  write_msr(0xc0000080, read_msr(0xc0000080) | 0x800);
  write_cr3(read_cr3());
}

template <class Entry>
void reserved(const Tables<Entry>& t) {
  if constexpr (sizeof(Entry) == 8) {
    target = kWindow + 0x120;
    t.set(0, kFrame | ALL | uint64_t{1} << 51);
    check_fault("reserved bit: read", attempt(kRead), reserved_error);
    check_fault("reserved bit: user write", attempt_user(kWrite), reserved_error | USER | WRITE);
    t.set(0, (kFrame | W | U | uint64_t{1} << 51));
    check_fault("reserved bit of an entry not present", attempt(kRead), 0);
    t.set(0, kFrame | ALL);
  }
  target = kLargeWindow + 0x10;
  const Entry low = sizeof(Entry) == 8 ? 0x2000 : 0x200000;
  *t.large = kLargeFrame | ALL | LARGE | low;
  invalidate_page(kLargeWindow);
  check_fault("reserved bit of a large page", attempt(kRead), reserved_error);
}

template <class Entry>
void accessed_and_dirty(const Tables<Entry>& t) {
  target = kWindow + 0x120;
  t.set(0, kFrame | ALL);
  t.set_upper(ALL);
  (void)attempt(kRead);
  check("a read sets accessed", t.leaf[0] & (A | D), A);
  check("... a level above, too", *const_cast<volatile Entry*>(t.upper) & A, A);
  (void)attempt(kWrite);
  check("a write sets dirty", t.leaf[0] & (A | D), A | D);
  t.set(0, kFrame | ALL | A);
  (void)attempt(kRead);
  (void)attempt(kWrite);
  check("a write after a read sets dirty", t.leaf[0] & (A | D), A | D);
  t.set(0, kFrame | P | U | A);
  (void)attempt_user(kWrite);
  check("a write that faults does not", t.leaf[0] & D, 0);
  t.set(0, kFrame | ALL);
  at<uint8_t>(kFrame + 0x120) = 0xc3;
  (void)attempt(kCall);
  check("a fetch sets accessed", t.leaf[0] & (A | D), A);
  *t.large = kLargeFrame | ALL | LARGE;
  invalidate_page(kLargeWindow);
  target = kLargeWindow + 0x123450;
  (void)attempt(kRead);
  check("large page: a read sets accessed", *t.large & (A | D), A);
  (void)attempt(kWrite);
  check("large page: a write sets dirty", *t.large & (A | D), A | D);
  check("large page: where it goes", at<uint32_t>(kLargeFrame + 0x123450), 0x1234);
  *t.large = kLargeFrame | P | U | LARGE;
  invalidate_page(kLargeWindow);
  check_fault("large page: read-only", attempt(kWrite), WRITE | 1);
  *t.large = kLargeFrame | P | W | LARGE;
  invalidate_page(kLargeWindow);
  check_fault("large page: supervisor", attempt_user(kRead), USER | 1);
}

template <class Entry>
void changes(const Tables<Entry>& t) {
  target = kWindow;
  at<uint32_t>(kFrame) = 1;
  at<uint32_t>(kOther) = 2;
  t.set(0, kFrame);
  (void)attempt(kRead);
  t.leaf[0] = kFrame | ALL;
  check_trap("present after a fault: no INVLPG needed", attempt(kRead), kNone);
  check("first frame", at<uint32_t>(kWindow), 1);
  t.leaf[0] = kOther | ALL;
  invalidate_page(kWindow);
  check("another frame after INVLPG", at<uint32_t>(kWindow), 2);
  t.leaf[0] = kFrame | ALL;
  write_cr3(read_cr3());
  check("another frame after MOV CR3", at<uint32_t>(kWindow), 1);
  t.leaf[0] = 0;
  invalidate_page(kWindow + 0xfff);
  check_fault("gone after INVLPG of any address in it", attempt(kRead), 0);
  // A fault drops the TLB entry of its address, so more rights need no INVLPG when the handler retries.
  t.set(0, kFrame | P | U);
  (void)attempt(kWrite);
  t.leaf[0] = kFrame | ALL;
  check_trap("writable after a fault", attempt(kWrite), kNone);
  // One frame at two addresses.
  t.set(1, kFrame | ALL);
  at<uint32_t>(kWindow + 8) = 0x5678;
  check("the same frame elsewhere", at<uint32_t>(kWindow + 0x1008), 0x5678);
  check("CR0.PG is on", read_cr0() >> 31, 1);
}

template <class Entry>
void across_pages(const Tables<Entry>& t) {
  const auto prepare = [&] {
    t.set(0, kFrame | ALL);
    t.set(1, kOther | ALL);
    at<uint32_t>(kWindow + 0xffc) = 0x11111111;
    at<uint32_t>(kWindow + 0x1000) = 0x22222222;
  };
  const auto untouched = [&](const char* name) { check(name, at<uint32_t>(kFrame + 0xffc), 0x11111111); };
  const auto fault_at = [](const char* name, const Trap& trap, word error, word address) {
    check_trap(name, trap, PF, error);
    check("... its CR2", trap.cr2, address);
  };
  prepare();
  target = kWindow + 0xffe;
  check("read across pages", at<uint32_t>(target), 0x22221111);
  at<uint32_t>(target) = 0xaaaabbbb;
  check("write across pages, first", at<uint32_t>(kFrame + 0xffc), 0xbbbb1111);
  check("write across pages, second", at<uint32_t>(kOther), 0x2222aaaa);
  prepare();
  t.set(1, 0);
  fault_at("second page missing: read", attempt(kRead), 0, kWindow + 0x1000);
  fault_at("second page missing: write", attempt(kWrite), WRITE, kWindow + 0x1000);
  untouched("... writes nothing");
  fault_at("second page missing: user write", attempt_user(kWrite), USER | WRITE, kWindow + 0x1000);
  fault_at("second page missing: add", attempt([] {
             asm volatile("addl $1, %0" : "+m"(at<uint32_t>(target)));
           }),
           modify_error, kWindow + 0x1000);
  untouched("... adds nothing");
  fault_at("second page missing: locked xadd", attempt([] {
             uint32_t one = 1;
             asm volatile("lock xaddl %1, %0" : "+m"(at<uint32_t>(target)), "+r"(one));
           }),
           modify_error, kWindow + 0x1000);
  untouched("... nothing either");
  t.set(1, kOther | P | U);
  fault_at("second page read-only: write", attempt(kWrite), WRITE | 1, kWindow + 0x1000);
  fault_at("second page read-only: xchg", attempt([] {
             uint32_t one = 1;
             asm volatile("xchgl %1, %0" : "+m"(at<uint32_t>(target)), "+r"(one));
           }),
           WRITE | 1, kWindow + 0x1000);
  untouched("... leaves the first one alone");
  check_trap("second page read-only: read", attempt(kRead), kNone);
  t.set(1, kOther | ALL);
  t.set(0, 0);
  fault_at("first page missing: write", attempt(kWrite), WRITE, kWindow + 0xffe);
  check("... leaves the second one alone", at<uint32_t>(kOther), 0x22222222);
}

template <class Entry>
void fetches(const Tables<Entry>& t) {
  t.set(0, kFrame | ALL);
  t.set(1, 0);
  // mov $imm32, %eax across the end of the page, then ret.
  const uint8_t code[6] = {0xb8, 0x44, 0x33, 0x22, 0x11, 0xc3};
  for (unsigned i = 0; i < 3; ++i) at<uint8_t>(kFrame + 0xffd + i) = code[i];
  for (unsigned i = 3; i < 6; ++i) at<uint8_t>(kOther + i - 3) = code[i];
  target = kWindow + 0xffd;
  const Trap& trap = attempt(kCall);
  check_trap("an instruction's second page is missing", trap, PF, t.no_execute ? FETCH : 0);
  check("... CR2 is the second page", trap.cr2, kWindow + 0x1000);
  check("... at the instruction", trap.ip, target);
  t.set(1, kOther | ALL);
  static volatile word result;
  (void)attempt([] {
    word value;
    asm volatile("call *%1" : "=a"(value) : "r"(target));
    result = value;
  });
  check("... runs when it is there", result, 0x11223344);
  at<uint8_t>(kOther + 1) = 0x55;
  (void)attempt([] {
    word value;
    asm volatile("call *%1" : "=a"(value) : "r"(target));
    result = value;
  });
  check("... with its second half changed", result, 0x55223344);
  t.set(1, (kOther + 0x1000) | ALL);
  for (unsigned i = 3; i < 6; ++i) at<uint8_t>(kOther + 0x1000 + i - 3) = i == 4 ? 0x66 : code[i];
  (void)attempt([] {
    word value;
    asm volatile("call *%1" : "=a"(value) : "r"(target));
    result = value;
  });
  check("... with its second half elsewhere", result, 0x66223344);
}

// A fault in the middle of a repeated instruction: finished iterations stay done, and the registers show the
// progress.
template <class Entry>
void repeated(const Tables<Entry>& t) {
  t.set(0, kFrame | ALL);
  t.set(1, 0);
  for (unsigned i = 0; i < 4096; i += 4) at<uint32_t>(kFrame + i) = i;
  target = kWindow + 0xff0;
  const Trap& store = attempt([] {
    word to = target, count = 10;
    asm volatile("rep stosl" : "+D"(to), "+c"(count) : "a"(7) : "memory");
  });
  check_trap("rep stos", store, PF, WRITE);
  check("... CR2", store.cr2, kWindow + 0x1000);
  check("... ecx", store.frame.cx, 6);
  check("... edi", store.frame.di, kWindow + 0x1000);
  check("... first part is stored", at<uint32_t>(kFrame + 0xffc), 7);
  const Trap& copy = attempt([] {
    word from = target + 2, to = kFrame + 0x3000, count = 8;
    asm volatile("rep movsl" : "+S"(from), "+D"(to), "+c"(count)::"memory");
  });
  check_trap("rep movs, source crosses", copy, PF, 0);
  check("... ecx", copy.frame.cx, 5);
  check("... esi", copy.frame.si, kWindow + 0xffe);
  check("... edi", copy.frame.di, kFrame + 0x300c);
  const Trap& back = attempt([] {
    word to = kWindow + 0x1ff8, count = 2000;
    asm volatile("std; rep stosl; cld" : "+D"(to), "+c"(count) : "a"(7) : "memory");
  });
  check_trap("rep stos backwards", back, PF, WRITE);
  check("... nothing done", back.frame.cx, 2000);
  const Trap& compare = attempt([] {
    word from = kWindow + 0xff0, to = kWindow + 0xff0, count = 100;
    asm volatile("repe cmpsl" : "+S"(from), "+D"(to), "+c"(count)::"memory", "cc");
  });
  check_trap("repe cmps", compare, PF, 0);
  check("... ecx", compare.frame.cx, 96);
  // The handler maps the page, and the instruction continues where it stopped.
  static const Tables<Entry>* tables;
  tables = &t;
  hooks[PF] = [](Frame*) { tables->set(1, kOther | ALL); };
  word to = kWindow + 0xf00, count = 200;
  asm volatile("rep stosl" : "+D"(to), "+c"(count) : "a"(9) : "memory");
  hooks[PF] = nullptr;
  check("continued: ecx", count, 0);
  check("continued: last one", at<uint32_t>(kOther + (200 * 4 - 0x100) - 4), 9);
}

template <class Entry>
void all(const Tables<Entry>& t) {
  if (!under_slalom()) reserved_error = 8, modify_error = 0;
  t.set_upper(ALL);
  rights(t);
  reserved(t);
  accessed_and_dirty(t);
  changes(t);
  across_pages(t);
  fetches(t);
  repeated(t);
  if (t.no_execute) no_execute(t);
}

alignas(4096) uint64_t leaf_table[512];

}  // namespace

#ifdef __x86_64__

extern "C" uint64_t boot_tables[512], boot_directories[4 * 512];
extern "C" char jump_away[];

namespace {

void canonical() {
  target = 0x800000000000;
  check_trap("not canonical: read",
             attempt([] { [[maybe_unused]] const uint32_t value = at<uint32_t>(target); }), GP, 0);
  check_trap("not canonical: write", attempt_user(kWrite), GP, 0);
  target = 0x7ffffffffffe;
  if (under_slalom()) check_trap("not canonical: across the edge", attempt(kRead), GP, 0);
  target = 0x800000000000;
  if (under_slalom())
    check_trap(
        "not canonical: by rbp", attempt([] {
          asm volatile("push %%rbp; mov %0, %%rbp; mov (%%rbp), %%eax; pop %%rbp" ::"r"(target) : "eax");
        }),
        SS, 0);
  const Trap& jump = attempt([] { asm volatile(".globl jump_away; jump_away: jmp *%0" ::"r"(target)); });
  check_trap("not canonical: jump", jump, GP, 0);
  if (under_slalom()) check("... is a fault of the jump", jump.ip, address_of(jump_away));  // not in QEMU
  target = 0xffff800000000000;
  check_trap("upper half, not mapped", attempt(kRead), PF, 0);
  check("... its CR2", read_cr2(), target);
  // The same tables map the upper half if its first entry points to them.
  boot_tables[256] = boot_tables[0];
  target = 0xffff800000000000 + kFrame;
  at<uint32_t>(kFrame) = 77;
  check("upper half, mapped", at<uint32_t>(target), 77);
  boot_tables[256] = 0;
}

alignas(4096) uint64_t other_root[512], upper_tables[2][3][512];

// Two address spaces whose upper halves differ in entries that are not global.
void other_upper_half() {
  constexpr word kUpper = 0xffff900000000000;
  constexpr word kFrames[] = {kFrame, kOther};
  uint64_t* const roots[] = {boot_tables, other_root};
  for (unsigned i = 0; i < 512; ++i) other_root[i] = boot_tables[i];
  for (unsigned space = 0; space < 2; ++space) {
    auto& tables = upper_tables[space];
    roots[space][288] = reinterpret_cast<word>(tables[0]) | ALL;
    tables[0][0] = reinterpret_cast<word>(tables[1]) | ALL;
    tables[1][0] = reinterpret_cast<word>(tables[2]) | ALL;
    tables[2][0] = kFrames[space] | ALL;
    at<uint32_t>(kFrames[space]) = 100 + space;
    // mov $1 or $2, %eax; ret
    const uint8_t code[] = {0xb8, static_cast<uint8_t>(1 + space), 0, 0, 0, 0xc3};
    for (unsigned i = 0; i < sizeof code; ++i) at<uint8_t>(kFrames[space] + 0x100 + i) = code[i];
  }
  const word first = read_cr3();
  const auto call = [] { return reinterpret_cast<unsigned (*)()>(kUpper + 0x100)(); };
  write_cr3(first);
  check("one upper half: data", at<uint32_t>(kUpper), 100);
  check("one upper half: code", call(), 1);
  write_cr3(reinterpret_cast<word>(other_root));
  check("another upper half: data", at<uint32_t>(kUpper), 101);
  check("another upper half: code", call(), 2);
  at<uint32_t>(kUpper) = 7;
  write_cr3(first);
  check("and back: data", at<uint32_t>(kUpper), 100);
  check("and back: code", call(), 1);
  check("what was written is there", at<uint32_t>(kOther), 7);
  boot_tables[288] = 0;
}

}  // namespace

void run_tests() {
  uint64_t* directory = boot_directories + 512;
  directory[0] = reinterpret_cast<word>(leaf_table) | ALL;
  all(Tables<uint64_t>{directory, leaf_table, directory + 2, true});
  canonical();
  other_upper_half();
}

#else

namespace {

alignas(4096) uint32_t directory[1024];
alignas(4096) uint32_t table[1024];
alignas(4096) uint64_t pointers[512];
alignas(4096) uint64_t directories[2][512];

void two_levels() {
  print("ok --- two levels\n");
  for (word i = 0; i < 64; ++i) directory[i] = i << 22 | ALL | LARGE;
  directory[kWindow >> 22] = reinterpret_cast<word>(table) | ALL;
  write_cr4(read_cr4() | 0x10);
  write_cr3(reinterpret_cast<word>(directory));
  write_cr0(read_cr0() | 0x80010000);
  all(Tables<uint32_t>{directory + (kWindow >> 22), table, directory + (kLargeWindow >> 22), false});
  write_cr0(read_cr0() & ~word{0x80000000});
}

void three_levels(bool no_execute) {
  print(no_execute ? "ok --- three levels with no-execute\n" : "ok --- three levels\n");
  for (word i = 0; i < 128; ++i) directories[0][i] = i << 21 | ALL | LARGE;
  directories[1][0] = reinterpret_cast<word>(leaf_table) | ALL;
  pointers[0] = reinterpret_cast<word>(directories[0]) | P;
  pointers[1] = reinterpret_cast<word>(directories[1]) | P;
  if (no_execute) write_msr(0xc0000080, read_msr(0xc0000080) | 0x800);
  write_cr4((read_cr4() & ~word{0x10}) | 0x20);
  write_cr3(reinterpret_cast<word>(pointers));
  write_cr0(read_cr0() | 0x80010000);
  all(Tables<uint64_t>{directories[1], leaf_table, directories[1] + 2, no_execute});
  if (under_slalom()) {  // QEMU reads these entries at every walk, and only then rejects them
    leaf_table[0] = kFrame | ALL;
    target = kWindow;
    pointers[1] = 0;
    check_trap("the four pointers are loaded with CR3", attempt(kRead), kNone);
    write_cr3(read_cr3());
    check_trap("... and not before", attempt(kRead), PF, 0);
    pointers[1] = reinterpret_cast<word>(directories[1]) | P | W;
    check_trap("reserved bits of the four pointers: MOV CR3", attempt([] { write_cr3(read_cr3()); }), GP, 0);
    check_trap("... changes nothing", attempt(kRead), PF, 0);
    pointers[1] = reinterpret_cast<word>(directories[1]) | P;
  }
  write_cr0(read_cr0() & ~word{0x80000000});
}

}  // namespace

void run_tests() {
  two_levels();
  three_levels(false);
  three_levels(true);
}
#endif
