#include "Checking/CheckedRun.hpp"

#include <fmt/core.h>
#include <setjmp.h>
#include <signal.h>

#include <cstring>
#include <memory>
#include <mutex>

#include "Checking/Findings.hpp"
#include "Executor/Fiber.h"
#include "HostBuffer.hpp"
#include "HostOptions.hpp"
#include "Runtime/HazardTracker.hpp"
#include "Support/Errors.hpp"

namespace mnk::host {

namespace {

uint64_t addressOf(const Binding& binding) {
  return reinterpret_cast<uintptr_t>(binding.buffer->contents()) + binding.offset;
}

void addRegions(const Binding& binding, const std::vector<Region>& regions, ByteRanges& bytes) {
  for (Region region : regions) {
    region.offset += addressOf(binding);
    addBytes(region, bytes);
  }
}

// "1 + 640", "0 - 4"
std::string withOffset(uint32_t index, int64_t offset) {
  return fmt::format("{} {} {}", index, offset < 0 ? '-' : '+', offset < 0 ? -offset : offset);
}

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

// A checked dispatch with its memory.
struct Checked {
  const DispatchJob& job;
  const MarginCopies& memory;
  Observer& observer;

  uint64_t originalAddress(uint32_t copy) const { return reinterpret_cast<uintptr_t>(memory.copies()[copy].original); }
};

void addShifted(const ByteRanges& ranges, uint64_t distance, ByteRanges& to) {
  for (const auto& range : ranges.ranges()) to.add(range.begin + distance, range.end + distance);
}

DispatchTrace traceOf(const Checked& checked) {
  DispatchTrace trace{.name = checked.job.name(), .touched = {}};
  for (uint32_t i = 0; i < checked.memory.copies().size(); ++i) {
    for (const AccessKind kind : kAccessKinds) {
      ByteRanges& touched = trace.touched[indexOf(kind)];
      addShifted(checked.observer.shadow().touched(i, kind), checked.originalAddress(i), touched);
    }
  }
  return trace;
}

void copyResultsBack(const Checked& checked) {
  ByteRanges written;
  for (uint32_t i = 0; i < checked.memory.copies().size(); ++i) {
    for (const AccessKind kind : {AccessKind::write, AccessKind::atomic}) {
      const ByteRanges touched = checked.observer.shadow().touched(i, kind);
      checked.memory.copyBack(i, touched);
      addShifted(touched, checked.originalAddress(i), written);
    }
  }
  for (const BoundMemory& bound : checked.job.memory) {
    if (auto* buffer = dynamic_cast<HostBuffer*>(bound.buffer.get())) buffer->noteWritten(written);
  }
}

// Addresses that must be written before they are read: outputs, and undefined bytes of buffers.
ByteRanges unset(const DispatchJob& job, ByteRanges outputs) {
  if (job.ready.dispatch.mayReadUndefined) return outputs;
  for (const BoundMemory& bound : job.memory) {
    const auto* buffer = dynamic_cast<const HostBuffer*>(bound.buffer.get());
    if (buffer) addShifted(buffer->unwritten(), 0, outputs);
  }
  return outputs;
}

void noteUndeclared(const Checked& checked, const DeclaredBytes& declared) {
  // A dispatch may read what it writes; the shadow memory checks that it was written first.
  ByteRanges readable = declared.writes;
  addShifted(declared.reads, 0, readable);
  const Shadow& shadow = checked.observer.shadow();
  for (uint32_t i = 0; i < checked.memory.copies().size(); ++i) {
    for (const AccessKind kind : kAccessKinds) {
      ByteRanges touched;
      addShifted(shadow.touched(i, kind), checked.originalAddress(i), touched);
      const auto outside = touched.firstOutside(writes(kind) ? declared.writes : readable);
      if (!outside) continue;
      const uint64_t offset = *outside - checked.originalAddress(i);
      const Actor actor = shadow.firstToucher(i, offset, kind);
      checked.observer.findings().note(sightingOf(FindingKind::undeclared, i, static_cast<int64_t>(offset), 1, actor));
    }
  }
}

std::string nameOf(const Checked& checked, const Sighting& sighting) {
  if (sighting.region == kNoRegion) return "all memory of the dispatch";
  if (sighting.region == kArenaRegion) {
    return fmt::format("threadgroup memory {}", withOffset(sighting.array, sighting.offset));
  }
  const uint64_t base = checked.originalAddress(sighting.region);
  const uint64_t end = base + checked.memory.copies()[sighting.region].bytes;
  return nameOfByte(checked.job.ready.dispatch, base + static_cast<uint64_t>(sighting.offset), {base, end});
}

std::vector<std::string> describe(const Checked& checked) {
  const Findings& findings = checked.observer.findings();
  std::set<Place> places = findings.places();
  for (const auto& [at, mistake] : checked.observer.mistakes()) {
    if (at.place != 0) places.insert(at.place);
  }
  std::vector<std::string> texts;
  const auto lines = linesOf(checked.job.pipeline().library(), places);
  for (const auto& [at, mistake] : checked.observer.mistakes()) {
    const std::string line = at.place != 0 ? lines.at(at.place) : fmt::format("{}:{}", at.file, at.line);
    texts.push_back(fmt::format("{}: {}: {}", line, mistake.text, nameOf(mistake.actor)));
  }
  const auto found = findings.describe([&](Place place) { return lines.at(place); },
                                       [&](const Sighting& sighting) { return nameOf(checked, sighting); },
                                       checked.job.options.allowsSameValue);
  for (const Finding& finding : found) texts.push_back(finding.text);
  return texts;
}

void describeConflicts(const Dispatch& dispatch, const DispatchTrace& now, const DispatchTrace& before,
                       std::vector<std::string>& texts) {
  for (const AccessKind mine : kAccessKinds) {
    for (const AccessKind theirs : kAccessKinds) {
      if (!conflict(mine, theirs)) continue;
      const auto shared = now.touched[indexOf(mine)].firstShared(before.touched[indexOf(theirs)]);
      if (!shared) continue;
      texts.push_back(fmt::format("{} {} {}, {} {} it; no barrier lies between the dispatches", now.name, verb(mine),
                                  nameOfByte(dispatch, *shared), before.name, verb(theirs)));
      return;
    }
  }
}

// `end` is the reason if the dispatch ended early.
Error foundError(const DispatchJob& job, std::vector<std::string> texts, const Result<void>& end) {
  constexpr size_t kMaxFindings = 8;
  const size_t count = texts.size();
  if (count > kMaxFindings) {
    texts.resize(kMaxFindings);
    texts.push_back(fmt::format("and {} more", count - kMaxFindings));
  }
  if (!end) texts.push_back(end.error().got);
  std::string got;
  for (const std::string& text : texts) got += (got.empty() ? "" : "\n") + text;
  return makeError(ErrorCode::deviceFault, job.op(),
                   fmt::format("{} broke {}{}", job.name(), count == 1 ? "a rule" : fmt::format("{} rules", count),
                               job.inSubmission()),
                   got, "accesses in bounds, declared by the dispatch, and ordered by barriers",
                   "Correct the kernel at the lines named, or its dispatch." + replayHint(job.options));
}

}  // namespace

DeclaredBytes::DeclaredBytes(const Dispatch& dispatch) {
  for (const Binding& binding : dispatch.buffers) {
    addRegions(binding, binding.reads, reads);
    addRegions(binding, binding.writes, writes);
  }
  for (const InlineBytes& bytes : dispatch.inlines) {
    const uint64_t begin = reinterpret_cast<uintptr_t>(bytes.bytes.data());
    reads.add(begin, begin + bytes.bytes.size());
  }
}

ByteRanges DeclaredBytes::outputs(const Dispatch& dispatch) const {
  return dispatch.bytesWritten ? ByteRanges() : writes.without(reads);
}

void poison(const ByteRanges& outputs) {
  constexpr int kPoison = 0xff;  // NaN in every format
  for (const auto& range : outputs.ranges()) {
    std::memset(reinterpret_cast<void*>(range.begin), kPoison, range.end - range.begin);
  }
}

std::string nameOfByte(const Dispatch& dispatch, uint64_t address, ByteRanges::Range among) {
  uint32_t index = 0;
  int64_t offset = 0;
  uint64_t nearest = ~uint64_t(0);
  const auto consider = [&](uint32_t candidate, uint64_t begin, uint64_t length) {
    if (begin != among.begin && (begin < among.begin || begin >= among.end)) return;
    const uint64_t end = begin + length;
    const uint64_t distance = address < begin ? begin - address : address >= end ? address - end + 1 : 0;
    if (distance >= nearest) return;
    nearest = distance;
    index = candidate;
    offset = static_cast<int64_t>(address - begin);
  };
  for (const Binding& binding : dispatch.buffers) consider(binding.index, addressOf(binding), binding.length);
  for (const InlineBytes& bytes : dispatch.inlines) {
    consider(bytes.index, reinterpret_cast<uintptr_t>(bytes.bytes.data()), bytes.bytes.size());
  }
  return fmt::format("buffer {}", withOffset(index, offset));
}

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

Result<void> runChecked(const DispatchJob& job, std::vector<DispatchTrace>& sinceBarrier) {
  const Dispatch& dispatch = job.ready.dispatch;
  const DeclaredBytes declared(dispatch);
  const ByteRanges outputs = declared.outputs(dispatch);
  poison(outputs);
  Arguments arguments = bindArguments(job);
  MNK_TRY(const auto memory, MarginCopies::make(job, arguments));
  Observer observer(memory, unset(job, outputs));
  const Watcher watcher = observer.watcher();
  auto outcome = runThreadgroups(job, arguments, &watcher);
  if (observer.ranOutOfMemory()) return noMemoryToCheck(job, "what its lanes touched");

  const Checked checked{job, memory, observer};
  copyResultsBack(checked);
  noteUndeclared(checked, declared);
  auto texts = describe(checked);
  DispatchTrace trace = traceOf(checked);
  for (const DispatchTrace& before : sinceBarrier) describeConflicts(dispatch, trace, before, texts);
  sinceBarrier.push_back(std::move(trace));
  if (texts.empty()) return outcome;
  return foundError(job, std::move(texts), outcome);
}

}  // namespace mnk::host
