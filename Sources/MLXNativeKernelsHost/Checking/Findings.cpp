#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <sstream>
#include <tuple>

#include "Checking/Findings.hpp"
#include "ChildProcess.hpp"
#include "TemporaryDirectory.hpp"

namespace mnk::host {

std::string fileName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

namespace {

// A return address belongs to the instruction after the call.
Place callOf(Place place) {
  return place - 1;
}

// Parses "folder/Kernels.metal:12 (discriminator 3)". Empty if the symbolizer does not know.
std::string fileAndLine(std::string_view text) {
  text = text.substr(0, text.find(" (discriminator"));
  return text.starts_with('?') ? "" : fileName(text);
}

// Parses atos output: "multiply(float*, unsigned int) (in Module.so) (Kernels.metal:12)".
std::string inLastBrackets(std::string_view text) {
  constexpr std::string_view kBegin = ") (";
  const size_t begin = text.rfind(kBegin);
  if (begin == std::string_view::npos || !text.ends_with(')')) return {};
  return fileName(text.substr(begin + kBegin.size(), text.size() - begin - kBegin.size() - 1));
}

struct Symbolizer {
  std::vector<std::string> command;  // offsets follow
  std::string (*parse)(std::string_view line);
};

std::vector<std::string> symbolize(const std::string& object, const std::vector<uint64_t>& offsets) {
  const auto directory = TemporaryDirectory::make();
  if (!directory) return {};
  const Symbolizer symbolizers[] = {
      {{"llvm-symbolizer", "--output-style=GNU", "--functions=none", "--no-inlines", "-e", object}, fileAndLine},
      {{"addr2line", "-e", object}, fileAndLine},
      {{"atos", "-o", object, "-offset"}, inLastBrackets},
  };
  for (auto [command, parse] : symbolizers) {
    for (const uint64_t offset : offsets) command.push_back(fmt::format("0x{:x}", offset));
    const std::string log = (directory->path() / command[0]).string();
    const ProgramRun run = runProgram(std::move(command), log, log);
    if (run.spawnError != 0 || !run.succeeded) continue;
    std::vector<std::string> lines;
    std::istringstream stream(run.output);
    for (std::string line; std::getline(stream, line);) {
      if (!line.empty()) lines.push_back(parse(line));
    }
    if (lines.size() == offsets.size()) return lines;
  }
  return {};
}

auto rank(const Sighting& s) {
  const uint32_t latest = std::max(s.first.threadgroup, s.second.threadgroup);
  return std::tuple(latest, s.array, s.offset, s.first.threadgroup, s.first.lane, s.second.lane);
}

std::string whatIsMissing(const Sighting& s) {
  const char* flag = s.inDeviceMemory() ? "mem_device" : "mem_threadgroup";
  switch (s.kind) {
    case FindingKind::raceInSimdgroup:
      return fmt::format("no simdgroup_barrier({}) between {} and lane {}", flag, nameOf(s.first), s.second.lane % 32);
    case FindingKind::raceInThreadgroup:
      return fmt::format("no threadgroup_barrier({}) between {} and {}", flag, nameOf(s.first), nameOf(s.second));
    default:
      return fmt::format("nothing orders {} and {}", nameOf(s.first), nameOf(s.second));
  }
}

}  // namespace

std::map<Place, std::string> linesOf(const HostLibrary& library, const std::set<Place>& places) {
  std::map<Place, std::string> lines;
  if (places.empty()) return lines;
  std::vector<uint64_t> offsets;
  for (const Place place : places) {
    Dl_info info{};
    const Place call = callOf(place);
    const bool known = dladdr(reinterpret_cast<void*>(call), &info) != 0;
    offsets.push_back(known ? call - reinterpret_cast<Place>(info.dli_fbase) : 0);
    lines[place] = fmt::format("offset 0x{:x}", offsets.back());
  }
  const auto names = symbolize(library.object().path(), offsets);
  size_t next = 0;
  for (auto& [place, line] : lines) {
    if (next < names.size() && !names[next].empty()) {
      line = names[next];
      // Accesses that the compiler merged have line 0.
      if (line.ends_with(":0")) line.resize(line.size() - 2);
    }
    ++next;
  }
  return lines;
}

std::string_view verb(AccessKind kind) {
  if (kind == AccessKind::read) return "reads";
  if (kind == AccessKind::write) return "writes";
  return kind == AccessKind::atomicLoad ? "loads atomically" : "updates atomically";
}

std::string nameOf(const Actor& actor) {
  return fmt::format("threadgroup {} simdgroup {} lane {}", actor.threadgroup, actor.lane / 32, actor.lane % 32);
}

template <typename At>
void Findings::keepLowest(std::map<Key<At>, Sighting>& sightings, At first, At second, const Sighting& s) {
  const Key<At> key{s.kind, s.region, std::move(first), s.first.kind, std::move(second), s.second.kind, s.sameValue};
  const auto [at, isNew] = sightings.try_emplace(key, s);
  if (!isNew && rank(s) < rank(at->second)) at->second = s;
}

void Findings::note(Sighting sighting) {
  const auto order = [](const Actor& a) { return std::tuple(a.place, a.kind, a.threadgroup, a.lane); };
  if (order(sighting.second) < order(sighting.first)) std::swap(sighting.first, sighting.second);
  keepLowest(sightings_, sighting.first.place, sighting.second.place, sighting);
}

std::set<Place> Findings::places() const {
  std::set<Place> places;
  for (const auto& [key, sighting] : sightings_) places.insert({key.first, key.second});
  return places;
}

std::vector<Finding> Findings::describe(const std::function<std::string(Place)>& lineOf,
                                        const std::function<std::string(const Sighting&)>& memoryOf,
                                        bool allowsSameValue) const {
  std::map<Key<std::string>, Sighting> byLine;
  for (const auto& [key, found] : sightings_) {
    Sighting s = found;
    std::string first = lineOf(s.first.place), second = lineOf(s.second.place);
    if (std::tie(second, s.second.kind) < std::tie(first, s.first.kind)) {
      std::swap(s.first, s.second);
      std::swap(first, second);
    }
    keepLowest(byLine, std::move(first), std::move(second), s);
  }
  // If only some bytes of two values were equal, the values differed.
  for (auto& [lines, s] : byLine) {
    auto same = lines;
    same.sameValue = true;
    const auto equalBytes = byLine.find(same);
    if (lines.sameValue || equalBytes == byLine.end()) continue;
    if (rank(equalBytes->second) < rank(s)) {
      s = equalBytes->second;
      s.sameValue = false;
    }
    byLine.erase(equalBytes);
  }
  std::vector<Finding> results;
  for (const auto& [lines, s] : byLine) {
    if (s.sameValue && allowsSameValue) continue;
    std::string text = fmt::format("{} {} ", lines.first, verb(lines.firstKind));
    if (s.kind == FindingKind::outOfBounds) {
      text += fmt::format("{} bytes outside of {}: {}", s.bytes, memoryOf(s), nameOf(s.first));
    } else if (s.kind == FindingKind::undeclared) {
      text += fmt::format("{}, which the dispatch does not declare: {}", memoryOf(s), nameOf(s.first));
    } else if (s.kind == FindingKind::uninitialized) {
      text += fmt::format("{}, which is uninitialized: {}", memoryOf(s), nameOf(s.first));
    } else {
      text += fmt::format("{}, {} {} {}; {}", memoryOf(s), lines.second, verb(lines.secondKind),
                          s.sameValue ? "the same value" : "it", whatIsMissing(s));
    }
    results.push_back({s.kind, s.sameValue, s.offset, s.first.place, s.second.place, std::move(text)});
  }
  std::sort(results.begin(), results.end(),
            [](const Finding& a, const Finding& b) { return std::tie(a.kind, a.text) < std::tie(b.kind, b.text); });
  return results;
}

}  // namespace mnk::host
