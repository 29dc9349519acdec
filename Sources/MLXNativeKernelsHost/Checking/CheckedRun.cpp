#include "CheckedRun.hpp"

#include <fmt/core.h>

#include "Checking/DeclaredAccesses.hpp"
#include "Checking/Observer.hpp"
#include "Checking/SourceLocations.hpp"
#include "HostBuffer.hpp"
#include "HostOptions.hpp"
#include "Support/Errors.hpp"

namespace mnk::host {

namespace {

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
  for (uint32_t i = 0; i < checked.memory.copies().size(); ++i) {
    for (const AccessKind kind : {AccessKind::write, AccessKind::atomic}) {
      checked.memory.copyBack(i, checked.observer.shadow().touched(i, kind));
    }
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

void noteWritten(const Checked& checked) {
  ByteRanges written;
  for (uint32_t i = 0; i < checked.memory.copies().size(); ++i) {
    for (const AccessKind kind : {AccessKind::write, AccessKind::atomic}) {
      addShifted(checked.observer.shadow().touched(i, kind), checked.originalAddress(i), written);
    }
  }
  for (const BoundMemory& bound : checked.job.memory) {
    if (auto* buffer = dynamic_cast<HostBuffer*>(bound.buffer.get())) buffer->noteWritten(written);
  }
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
  return Error{.code = ErrorCode::deviceFault,
               .op = job.op(),
               .what = fmt::format("{} broke {}{}", job.name(), count == 1 ? "a rule" : fmt::format("{} rules", count),
                                   job.inSubmission()),
               .got = std::move(got),
               .expected = "accesses in bounds, declared by the dispatch, and ordered by barriers",
               .fix = "Correct the kernel at the lines named, or its dispatch." + replayHint(job.options)};
}

}  // namespace

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
  noteWritten(checked);
  noteUndeclared(checked, declared);
  auto texts = describe(checked);
  DispatchTrace trace = traceOf(checked);
  for (const DispatchTrace& before : sinceBarrier) describeConflicts(dispatch, trace, before, texts);
  sinceBarrier.push_back(std::move(trace));
  if (texts.empty()) return outcome;
  return foundError(job, std::move(texts), outcome);
}

}  // namespace mnk::host
