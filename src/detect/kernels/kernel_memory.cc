#include "detect/kernels/kernel_memory.h"

namespace slalom {
namespace {

// Functions of the allocators, which may access free memory.
constexpr std::string_view kAllocator[] = {
    "kmem_cache_", "__kmem_cache_", "kmalloc",         "__kmalloc",    "kfree",       "kvfree",
    "kvmalloc",    "slab_",         "__slab_",         "___slab_",     "get_partial", "deactivate_",
    "put_cpu_",    "__unfreeze_",   "unfreeze_",       "flush_cpu_",   "allocate_",   "discard_slab",
    "free_slab",   "__free_slab",   "free_to_",        "setup_obj",    "init_object", "check_obj",
    "check_slab",  "on_freelist",   "free_debug_",     "alloc_debug_", "memcg_slab_", "kasan_",
    "__kasan_",    "kfence_",       "vfree",           "__vfree",      "__vunmap",    "shuffle_",
    "new_slab",    "refill_obj",    "__free_one_page", "free_unref_",  "__free_pages"};
// Functions that work for their callers: the caller says more.
constexpr std::string_view kHelpers[] = {
    "__list_", "list_",     "mem",   "__mem",  "str",     "_raw_",    "native_queued_", "queued_",
    "__pv_",   "refcount_", "rb_",   "__rb_",  "_copy_",  "copy_",    "lockref_",       "mutex_",
    "up_",     "down_",     "kref_", "rwsem_", "__rwsem", "rep_movs", "clear_",         "__mutex_"};

}  // namespace

bool is_allocator_function(std::string_view function) {
  return begins_with_any(function, kAllocator);
}

std::string telling_function(const KernelMoment& moment, const KernelContext& context, const Names& names) {
  const std::vector<Place> frames = context.frames(moment.site.pc, moment.path);
  for (const Place frame : frames) {
    std::string name = function_name(names.place(frame));
    if (!begins_with_any(name, kHelpers) && !begins_with_any(name, kAllocator)) return name;
  }
  return function_name(names.place(frames.front()));
}

std::string moment_text(const KernelMoment& moment, const KernelContext& context, const Names& names) {
  return fmt::format("by {} in {}", names.agent(moment.site.agent),
                     context.stack_text(moment.site.pc, moment.path, names));
}

}  // namespace slalom
