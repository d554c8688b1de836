// Asynchronous input and output (aio_read and its kin, lio_listio). Each request is an agent of its own: a
// detached thread that transfers the data at its turn and then reports completion, in the control block and
// by the request's signal or function. The schedule decides when that happens.
//
// As in libc, requests for one descriptor are done one after the other, in the order in which they were made.
// Priorities do not matter. Control blocks are libc's, and hold a request's state in libc's own fields.
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "preload/io/random.h"
#include "preload/memory/accesses.h"
#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/signals/signals.h"
#include "preload/sync/threads.h"
#include "preload/sync/waits.h"

// Counts the changes of requests. Waiting threads wait on it as on a futex of the model. Reports show its
// name.
extern "C" {
constinit uint32_t aio_requests = 0;
}

namespace slalom::preload {
namespace {

constexpr uint32_t kMostRequests = 256;
constexpr uint32_t kMostBatches = 64;
constexpr int kHighestPriority = 20;  // AIO_PRIO_DELTA_MAX
constexpr int kSync = LIO_NOP + 1;    // operations that LIO_READ and LIO_WRITE do not cover
constexpr int kDataSync = LIO_NOP + 2;

struct Batch {  // a lio_listio() call that notifies when all its requests are done
  uint32_t left;
  sigevent event;
};

struct Request {
  aiocb* control;  // nullptr if this place is free
  uint64_t order;
  uint64_t pc;  // place of the call
  int operation;
  Batch* batch;
  sigevent event;
  int descriptor;
  bool begun;
  bool cancelled;  // its control block belongs to the program again
};
constinit Request requests[kMostRequests] = {};
constinit Batch batches[kMostBatches] = {};
constinit uint64_t requests_made = 0;

bool is_open(const Request& request) {
  return request.control != nullptr && !request.cancelled;
}

bool somebody_waits() {
  Runtime& rt = runtime();
  for (uint32_t i = 0; i < rt.agent_count(); ++i)
    if (!rt.ended(i) && rt.agent(i).need == Need::Wakeup && rt.agent(i).object == &aio_requests) return true;
  return false;
}

// Part of an operation: reports that a request has changed.
void tell_change() {
  ++aio_requests;
  runtime().tell_access(OpKind::ReadModifyWrite, &aio_requests, 4, aio_requests, true);
}
void wake_all(uint64_t pc) {
  if (somebody_waits()) wake_waiters(&aio_requests, UINT32_MAX, pc);
}

// Part of an operation: marks the request as done in its control block.
void complete(aiocb* control, ssize_t result, int error) {
  control->__return_value = result;
  control->__error_code = error;
  runtime().tell_access(OpKind::AtomicStore, &control->__error_code, 4, static_cast<uint64_t>(error), true);
  tell_change();
}

// Reads the error code of a request, as a whole operation.
int error_of(const aiocb* control, uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::AtomicLoad, object_id(&control->__error_code), pc);
  const int error = control->__error_code;
  rt.tell_access(OpKind::AtomicLoad, &control->__error_code, 4, static_cast<uint64_t>(error), false);
  rt.retire(error == EINPROGRESS);
  return error;
}

// Starts an agent that runs start(argument) for the program. Reports name it after the code at `entry`.
// Returns an errno value.
int start_agent(void* (*start)(void*), void* argument, uint64_t entry, uint64_t pc) {
  Runtime& rt = runtime();
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  const int result = create_agent(&thread, &detached, start, argument, pc);
  pthread_attr_destroy(&detached);
  if (result != 0) return result;
  const uint32_t index = rt.agent_count() - 1;
  rt.agent(index).blocked = UINT64_MAX;
  rt.slot(index).entry = entry;
  return 0;
}

struct Call {
  void (*function)(sigval);
  sigval value;
};
void* run_call(void* data) {
  const Call call = *static_cast<Call*>(data);
  free(data);
  call.function(call.value);
  return nullptr;
}

void notify(const sigevent& event, uint64_t pc) {
  if (event.sigev_notify == SIGEV_SIGNAL && event.sigev_signo >= 1 && event.sigev_signo < NSIG)
    signal_process(event.sigev_signo, pc, {SI_ASYNCIO, event.sigev_value});
  if (event.sigev_notify != SIGEV_THREAD) return;
  auto* call = static_cast<Call*>(malloc(sizeof(Call)));
  if (call == nullptr) return;
  *call = {event.sigev_notify_function, event.sigev_value};
  start_agent(run_call, call, reinterpret_cast<uint64_t>(call->function), pc);
}

void leave_batch(Batch* batch, uint64_t pc) {
  if (batch == nullptr || --batch->left > 0) return;
  const sigevent event = batch->event;  // copied, because another call may now reuse the batch
  notify(event, pc);
}

ssize_t transfer(const Request& request, aiocb& control) {
  const int descriptor = request.descriptor;
  auto* buffer = const_cast<void*>(control.aio_buf);
  const size_t size = control.aio_nbytes;
  const bool seen = runtime().sees_accesses();
  if (request.operation == kSync) return fsync(descriptor);
  if (request.operation == kDataSync) return fdatasync(descriptor);
  if (request.operation == LIO_WRITE) {
    if (seen) tell_range(OpKind::Load, buffer, size, request.pc);
    const ssize_t result = pwrite(descriptor, buffer, size, control.aio_offset);
    return result == -1 && errno == ESPIPE ? write(descriptor, buffer, size) : result;
  }
  ssize_t result = -1;
  if (is_random_device(descriptor))
    result = read(descriptor, buffer, size);
  else if ((result = pread(descriptor, buffer, size, control.aio_offset)) == -1 && errno == ESPIPE)
    result = read(descriptor, buffer, size);
  if (seen && result > 0) tell_range(OpKind::Store, buffer, static_cast<uint64_t>(result), request.pc);
  return result;
}

bool comes_later(const Request& request) {
  for (const Request& other : requests)
    if (is_open(other) && other.descriptor == request.descriptor && other.order < request.order) return true;
  return false;
}

void* run_request(void* argument) {
  Request& request = *static_cast<Request*>(argument);
  Runtime& rt = runtime();
  const uint64_t pc = request.pc;
  while (!request.cancelled && comes_later(request)) wait_on_word(&aio_requests, aio_requests, kNever, pc);
  rt.arrive(OpKind::ReadModifyWrite, object_id(&aio_requests), pc);
  request.begun = !request.cancelled;
  tell_change();
  rt.retire();
  if (request.begun) {
    const ssize_t result = transfer(request, *request.control);
    const int error = result < 0 ? errno : 0;
    rt.arrive(OpKind::AtomicStore, object_id(&request.control->__error_code), pc);
    complete(request.control, result, error);
    rt.retire();
  }
  const Request over = request;
  request.control = nullptr;
  wake_all(pc);
  notify(over.event, pc);
  leave_batch(over.batch, pc);
  return nullptr;
}

// Makes a request. Errors that libc finds only when it does the request, such as a bad descriptor, are found
// then. Returns -1 with errno if the request was not made; the control block then has the error as well.
int make_request(aiocb* control, int operation, uint64_t entry, uint64_t pc, Batch* batch = nullptr) {
  const auto refuse = [&](int error) {
    control->__error_code = error;
    control->__return_value = -1;
    return errno = error, -1;
  };
  Request* free_place = nullptr;
  for (Request& request : requests) {
    if (is_open(request) && request.control == control)
      runtime().misuse(pc, "a request with the control block of one that is still in progress");
    if (request.control == nullptr && free_place == nullptr) free_place = &request;
  }
  if (control->aio_reqprio < 0 || control->aio_reqprio > kHighestPriority) return refuse(EINVAL);
  if (free_place == nullptr) return refuse(EAGAIN);
  *free_place = {
      control, ++requests_made, pc, operation, batch, control->aio_sigevent, control->aio_fildes, false,
      false};
  control->__error_code = EINPROGRESS;
  control->__return_value = 0;
  if (start_agent(run_request, free_place, entry, pc) == 0) return 0;
  free_place->control = nullptr;
  return refuse(EAGAIN);
}

// Waits until one or all of the requests are done. Returns false with errno if a signal handler or the
// deadline ended the wait.
bool wait_for(const aiocb* const* list, int count, bool all, uint64_t deadline, uint64_t pc) {
  Runtime& rt = runtime();
  for (;;) {
    const uint32_t seen = aio_requests;
    bool any = false, open = false;
    for (int i = 0; i < count; ++i) {
      if (list[i] == nullptr) continue;
      const bool over = error_of(list[i], pc) != EINPROGRESS;
      any = any || over;
      open = open || !over;
    }
    if (all ? !open : any) return true;
    rt.cancel_point(true);
    const Interruptible call(OnSignal::Ends);
    const long result = wait_on_word(&aio_requests, seen, deadline, pc);
    rt.cancel_point(false);
    if (result == -EINTR || result == -ETIMEDOUT) return errno = result == -EINTR ? EINTR : EAGAIN, false;
  }
}

int cancel(int descriptor, const aiocb* control, uint64_t pc) {
  if (fcntl(descriptor, F_GETFD) == -1) return -1;
  if (control != nullptr && control->aio_fildes != descriptor) return errno = EINVAL, -1;
  Runtime& rt = runtime();
  int result = AIO_ALLDONE;
  rt.arrive(OpKind::ReadModifyWrite, object_id(&aio_requests), pc);
  tell_change();
  for (Request& request : requests) {
    if (!is_open(request) || request.descriptor != descriptor) continue;
    if (control != nullptr && request.control != control) continue;
    if (request.begun) {
      result = AIO_NOTCANCELED;
      continue;
    }
    request.cancelled = true;
    complete(request.control, -1, ECANCELED);
    if (result == AIO_ALLDONE) result = AIO_CANCELED;
  }
  rt.retire();
  wake_all(pc);
  return result;
}

Batch* new_batch(uint32_t count, const sigevent& event) {
  for (Batch& batch : batches) {
    if (batch.left > 0) continue;
    batch = {count, event};
    return &batch;
  }
  return nullptr;
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

#define ENTRY(name) reinterpret_cast<uint64_t>(&(name))

SLALOM_EXPORT int aio_read(aiocb* control) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(aio_read)(control);
  return make_request(control, LIO_READ, ENTRY(aio_read), SLALOM_PLACE());
}
SLALOM_EXPORT int aio_write(aiocb* control) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(aio_write)(control);
  return make_request(control, LIO_WRITE, ENTRY(aio_write), SLALOM_PLACE());
}
SLALOM_EXPORT int aio_fsync(int what, aiocb* control) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(aio_fsync)(what, control);
  if (what != O_SYNC && what != O_DSYNC) return errno = EINVAL, -1;
  const int flags = fcntl(control->aio_fildes, F_GETFL);
  if (flags == -1 || (flags & O_ACCMODE) == O_RDONLY) return errno = EBADF, -1;
  return make_request(control, what == O_SYNC ? kSync : kDataSync, ENTRY(aio_fsync), SLALOM_PLACE());
}
SLALOM_EXPORT int aio_error(const aiocb* control) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(aio_error)(control);
  return error_of(control, SLALOM_PLACE());
}
SLALOM_EXPORT ssize_t aio_return(aiocb* control) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(aio_return)(control);
  const uint64_t pc = SLALOM_PLACE();
  if (error_of(control, pc) == EINPROGRESS)
    runtime().misuse(pc, "aio_return of a request that is still in progress");
  return control->__return_value;
}
SLALOM_EXPORT int aio_suspend(const aiocb* const* list, int count, const timespec* limit) {
  if (!runtime().controls()) return SLALOM_REAL(aio_suspend)(list, count, limit);
  if (count < 0 || (limit != nullptr && !valid(limit))) return errno = EINVAL, -1;
  const uint64_t deadline = limit == nullptr ? kNever : after(*limit);
  return wait_for(list, count, false, deadline, SLALOM_PLACE()) ? 0 : -1;
}
SLALOM_EXPORT int aio_cancel(int descriptor, aiocb* control) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(aio_cancel)(descriptor, control);
  return cancel(descriptor, control, SLALOM_PLACE());
}
SLALOM_EXPORT int lio_listio(int mode, aiocb* const* list, int count, sigevent* event) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(lio_listio)(mode, list, count, event);
  if ((mode != LIO_WAIT && mode != LIO_NOWAIT) || count < 0) return errno = EINVAL, -1;
  const uint64_t pc = SLALOM_PLACE();
  const auto is_request = [&](int i) { return list[i] != nullptr && list[i]->aio_lio_opcode != LIO_NOP; };
  uint32_t wanted = 0;
  for (int i = 0; i < count; ++i) wanted += is_request(i);
  Batch* batch = nullptr;
  if (mode == LIO_NOWAIT && event != nullptr) {
    if (wanted == 0) return notify(*event, pc), 0;
    batch = new_batch(wanted, *event);
    if (batch == nullptr) return errno = EAGAIN, -1;
  }
  bool failed = false;
  for (int i = 0; i < count; ++i) {
    if (!is_request(i)) continue;
    const bool writes = list[i]->aio_lio_opcode == LIO_WRITE;
    const uint64_t entry = writes ? ENTRY(aio_write) : ENTRY(aio_read);
    if (make_request(list[i], writes ? LIO_WRITE : LIO_READ, entry, pc, batch) == 0) continue;
    failed = true;
    leave_batch(batch, pc);
  }
  if (mode == LIO_WAIT) {
    if (!wait_for(list, count, true, kNever, pc)) return -1;
    for (int i = 0; i < count; ++i) failed = failed || (is_request(i) && list[i]->__error_code != 0);
  }
  return failed ? (errno = EIO, -1) : 0;
}

// Offsets have 64 bits in both variants. No second C++ functions, because agents are named after the symbols.
static_assert(sizeof(aiocb) == sizeof(aiocb64));
#define ALSO(name) \
  asm(".text\n.globl " #name "64\n.type " #name "64, @function\n" #name "64: jmp " #name "@PLT");
ALSO(aio_read)
ALSO(aio_write)
ALSO(aio_fsync)
ALSO(aio_error)
ALSO(aio_return)
ALSO(aio_suspend)
ALSO(aio_cancel)
ALSO(lio_listio)
#undef ALSO
