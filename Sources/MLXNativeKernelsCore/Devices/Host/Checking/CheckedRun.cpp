#include "CheckedRun.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "Devices/Host/Checking/Declared.hpp"
#include "Devices/Host/Checking/Observer.hpp"
#include "Devices/Host/Checking/Places.hpp"
#include "Devices/Host/HostOptions.hpp"

namespace mnk::host {

namespace {

// One checked dispatch with the memory it ran on.
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
  DispatchTrace trace{.name = checked.job.name(), .reads = {}, .writes = {}, .atomics = {}};
  const Shadow& shadow = checked.observer.shadow();
  for (uint32_t i = 0; i < checked.memory.copies().size(); ++i) {
    const uint64_t base = checked.originalAddress(i);
    addShifted(shadow.touched(i, AccessKind::read), base, trace.reads);
    addShifted(shadow.touched(i, AccessKind::write), base, trace.writes);
    addShifted(shadow.touched(i, AccessKind::atomic), base, trace.atomics);
  }
  return trace;
}

void copyResultsBack(const Checked& checked) {
  for (uint32_t i = 0; i < checked.memory.copies().size(); ++i) {
    for (const AccessKind kind : {AccessKind::write, AccessKind::atomic}) {
      checked.memory.copyBack(i, checked.observer.shadow().touched(i, kind));
    }
  }
}

void noteUndeclared(const Checked& checked, const DeclaredBytes& declared) {
  // Reading what it may write anyway adds nothing that other dispatches must be ordered with.
  ByteRanges readable = declared.writes;
  addShifted(declared.reads, 0, readable);
  const Shadow& shadow = checked.observer.shadow();
  for (uint32_t i = 0; i < checked.memory.copies().size(); ++i) {
    for (const AccessKind kind : {AccessKind::read, AccessKind::write, AccessKind::atomic}) {
      ByteRanges touched;
      addShifted(shadow.touched(i, kind), checked.originalAddress(i), touched);
      const auto outside = touched.firstOutside(kind == AccessKind::read ? readable : declared.writes);
      if (!outside) continue;
      const uint64_t offset = *outside - checked.originalAddress(i);
      const Actor actor = shadow.firstToucher(i, offset, kind);
      checked.observer.findings().note({.kind = FindingKind::undeclared,
                                        .region = i,
                                        .offset = static_cast<int64_t>(offset),
                                        .bytes = 1,
                                        .first = actor,
                                        .second = actor});
    }
  }
}

std::string nameOf(const Checked& checked, const Sighting& sighting) {
  if (sighting.region == kNoRegion) return "all memory of the dispatch";
  if (sighting.region == kArenaRegion) {
    const int64_t offset = sighting.offset;
    return fmt::format("threadgroup memory {} {} {}", sighting.array, offset < 0 ? '-' : '+', std::abs(offset));
  }
  const uint64_t base = checked.originalAddress(sighting.region);
  return nameOfByte(checked.job.ready.dispatch, base + static_cast<uint64_t>(sighting.offset));
}

std::vector<std::string> describe(const Checked& checked) {
  std::vector<std::string> texts;
  for (const auto& [line, mistake] : checked.observer.mistakes()) {
    texts.push_back(fmt::format("{}:{}: {}: {}", line.first, line.second, mistake.text, nameOf(mistake.actor)));
  }
  const Findings& findings = checked.observer.findings();
  if (findings.empty()) return texts;
  const auto lines = linesOf(checked.job.pipeline().library(), findings.places());
  const auto found = findings.describe([&](Place place) { return lines.at(place); },
                                       [&](const Sighting& sighting) { return nameOf(checked, sighting); },
                                       checked.job.options.allowSameValue);
  for (const Finding& finding : found) texts.push_back(finding.text);
  return texts;
}

void describeConflicts(const Dispatch& dispatch, const DispatchTrace& now, const DispatchTrace& before,
                       std::vector<std::string>& texts) {
  struct Side {
    AccessKind kind;
    const ByteRanges& bytes;
  };
  const auto sides = [](const DispatchTrace& trace) {
    return std::array<Side, 3>{
        {{AccessKind::read, trace.reads}, {AccessKind::write, trace.writes}, {AccessKind::atomic, trace.atomics}}};
  };
  for (const Side& mine : sides(now)) {
    for (const Side& theirs : sides(before)) {
      if (!conflict(mine.kind, theirs.kind)) continue;
      const auto shared = mine.bytes.firstShared(theirs.bytes);
      if (!shared) continue;
      texts.push_back(fmt::format("{} {} {}, {} {} it; no barrier lies between the dispatches", now.name,
                                  verb(mine.kind), nameOfByte(dispatch, *shared), before.name, verb(theirs.kind)));
      return;
    }
  }
}

Error foundError(const DispatchJob& job, std::vector<std::string> texts) {
  constexpr size_t kMost = 8;
  const size_t count = texts.size();
  if (count > kMost) {
    texts.resize(kMost);
    texts.push_back(fmt::format("and {} more", count - kMost));
  }
  const Dispatch& dispatch = job.ready.dispatch;
  return Error{.code = ErrorCode::deviceFault,
               .op = dispatch.kind.empty() ? "Host device" : dispatch.kind,
               .what = fmt::format("{} broke {}{}", job.name(), count == 1 ? "a rule" : fmt::format("{} rules", count),
                                   job.label.empty() ? "" : fmt::format(" in '{}'", job.label)),
               .got = fmt::format("{}", fmt::join(texts, "\n")),
               .expected = "accesses in bounds, declared by the dispatch, and ordered by barriers",
               .fix = "Correct the kernel at the lines named, or its dispatch." + replayHint(job.options)};
}

}  // namespace

Result<void> runChecked(const DispatchJob& job, std::vector<DispatchTrace>& sinceBarrier) {
  const Dispatch& dispatch = job.ready.dispatch;
  const DeclaredBytes declared(dispatch);
  poisonOutputs(dispatch, declared);
  Arguments arguments = bindArguments(job);
  const auto memory = MarginCopies::make(job, arguments);
  if (!memory) return memory.error();
  Observer observer(*memory);
  const Watcher watcher = observer.watcher();
  auto outcome = runThreadgroups(job, arguments, &watcher);

  const Checked checked{job, *memory, observer};
  copyResultsBack(checked);
  noteUndeclared(checked, declared);
  auto texts = describe(checked);
  DispatchTrace trace = traceOf(checked);
  for (const DispatchTrace& before : sinceBarrier) describeConflicts(dispatch, trace, before, texts);
  sinceBarrier.push_back(std::move(trace));
  if (texts.empty()) return outcome;
  if (!outcome) texts.push_back(outcome.error().got);
  return foundError(job, std::move(texts));
}

}  // namespace mnk::host
