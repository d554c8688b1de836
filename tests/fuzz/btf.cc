// Type information: whatever it contains, questions about it are answered within it, and end.
#include "symbols/btf.h"

#include "base/check.h"
#include "fuzz/harness.h"
#include "unit/symbols/btf_section.h"

namespace slalom {

std::vector<std::vector<uint8_t>> seed_inputs() {
  BtfSection loops;
  loops.plain(BtfSection::Typedef, "task", 1);
  loops.members(BtfSection::Struct, "task", 8, {{"", 2, 0}, {"", 2, 0}, {"flags", 3, 0}});
  loops.array(3, 4);
  return {task_types().bytes(), loops.bytes()};
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const slalom::Result<slalom::Btf> btf = slalom::Btf::parse(std::vector<uint8_t>(data, data + size));
  if (!btf.ok()) {
    CHECK(!btf.error().message.empty(), "refused without a reason");
    return 0;
  }
  for (const char* path :
       {"task.flags", "task.hi", "task.comm[15]", "task.se[2].y", "entity_t.y", "task.next", "task.more"})
    if (const auto field = btf->field(path)) btf->struct_name(*field);
  for (const char* name : {"task", "entity_t", "state"}) {
    btf->size_of(name);
    for (uint64_t offset = 0; offset < 128; offset += 3)
      CHECK(btf->describe(name, offset).starts_with(name), "a description of something else");
  }
  btf->element_count("task.se");
  btf->enumerator("HUGE");
  return 0;
}
