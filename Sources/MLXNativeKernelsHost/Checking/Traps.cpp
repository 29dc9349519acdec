#include "Traps.hpp"

#include <setjmp.h>
#include <signal.h>

#include <memory>
#include <mutex>

#include "Executor/Sanitizers.h"

namespace mnk::host {

namespace {

// Darwin sends SIGBUS for an access to a guard page. Compilers before LLVM 20 have no callback for an index outside of
// a local array: they trap, with SIGILL on x86 and SIGTRAP on Arm.
constexpr const char* kBadAddress = "a bad address or a stack that overflowed";
constexpr const char* kCompilerTrap = "a trap of the compiler, such as for an index outside of its array";

struct Trap {
  int signal;
  const char* text;
  struct sigaction before;
};
Trap traps[] = {{SIGSEGV, kBadAddress, {}},
                {SIGBUS, kBadAddress, {}},
                {SIGFPE, "a division by zero", {}},
                {SIGILL, kCompilerTrap, {}},
                {SIGTRAP, kCompilerTrap, {}}};

thread_local sigjmp_buf* target = nullptr;

void onTrap(int signal, siginfo_t* info, void* context) {
  if (target) siglongjmp(*target, signal);
  for (const Trap& trap : traps) {
    if (trap.signal != signal) continue;
    if (trap.before.sa_flags & SA_SIGINFO) return trap.before.sa_sigaction(signal, info, context);
    if (trap.before.sa_handler != SIG_DFL && trap.before.sa_handler != SIG_IGN) return trap.before.sa_handler(signal);
    sigaction(signal, &trap.before, nullptr);  // the instruction runs again and reaches the previous handler
  }
}

// Installed while any thread runs a checked kernel.
class Handlers {
 public:
  Handlers() {
    std::lock_guard lock(mutex_);
    if (users_++ > 0) return;
    struct sigaction action {};
    action.sa_sigaction = onTrap;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (Trap& trap : traps) sigaction(trap.signal, &action, &trap.before);
  }
  ~Handlers() {
    std::lock_guard lock(mutex_);
    if (--users_ > 0) return;
    for (const Trap& trap : traps) sigaction(trap.signal, &trap.before, nullptr);
  }

 private:
  static inline std::mutex mutex_;
  static inline int users_ = 0;
};

// The lane's stack may be the one that overflowed.
class AlternateStack {
 public:
  AlternateStack() : memory_(std::make_unique<char[]>(kBytes)) {
    stack_t stack{};
    stack.ss_sp = memory_.get();
    stack.ss_size = kBytes;
    sigaltstack(&stack, &before_);
  }
  ~AlternateStack() { sigaltstack(&before_, nullptr); }

 private:
  static constexpr size_t kBytes = 64 * 1024;
  std::unique_ptr<char[]> memory_;
  stack_t before_{};
};

// A separate function, because no local variable may change between the two returns of sigsetjmp.
int runOrJump(const std::function<void()>& body) {
  sigjmp_buf here;
  if (const int signal = sigsetjmp(here, 1)) {
    target = nullptr;
    return signal;
  }
  target = &here;
  body();
  target = nullptr;
  return 0;
}

}  // namespace

std::string_view runCatchingTraps(const std::function<void()>& body) {
#if MNK_HOST_TSAN  // TSan tracks switches between stacks, but not these jumps
  body();
#else
  const Handlers handlers;
  const AlternateStack stack;
  const int signal = runOrJump(body);
  for (const Trap& trap : traps) {
    if (trap.signal == signal) return trap.text;
  }
#endif
  return {};
}

}  // namespace mnk::host
