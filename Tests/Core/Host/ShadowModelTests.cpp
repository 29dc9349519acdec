// Random small programs: in every order of lanes, the shadow memory must agree with a model that compares every pair of
// accesses.
#include <array>
#include <map>
#include <set>

#include "Checking/Shadow.hpp"
#include "Harness/Check.hpp"
#include "Harness/Seeded.hpp"

using namespace mnk;
using namespace mnk::host;
using namespace mnk::test;

namespace {

constexpr uint32_t kThreads = 64, kGroups = 2, kSpace = 24;

// One access of a lane. The action's number is its source line.
struct Step {
  uint32_t thread = 0, step = 0;
  uint32_t action = 0;  // odd reads, even writes; 1, 2, 5, 6 a byte, else a word; above 4 in device memory
  uint32_t offset = 0, value = 0;

  bool inDevice() const { return action > 4; }
  bool writes() const { return action % 2 == 0; }
  uint32_t bytes() const { return (action - 1) % 4 < 2 ? 1 : 4; }
  uint32_t group() const { return thread / kThreads; }
  bool touches(uint32_t byte) const { return byte >= offset && byte < offset + bytes(); }
  uint32_t byteAt(uint32_t at) const { return value >> (8 * (at - offset)) & 255; }
};

// The barrier at which all lanes wait after a step.
enum class Meeting : uint32_t { none, simdThreadgroup, simdDevice, groupThreadgroup, groupDevice, groupBoth, count };

bool isOfThreadgroup(Meeting meeting) {
  return meeting >= Meeting::groupThreadgroup;
}
uint32_t orderedBy(Meeting meeting) {
  constexpr uint32_t kMemory[] = {
      0, kOrdersThreadgroup, kOrdersDevice, kOrdersThreadgroup, kOrdersDevice, kOrdersDevice | kOrdersThreadgroup};
  return kMemory[static_cast<uint32_t>(meeting)];
}

struct Program {
  std::vector<Meeting> meetings;  // one after each step
  std::vector<Step> steps;
};

struct Found {
  FindingKind kind;
  bool sameValue;
  std::set<uint32_t> actions;
  auto operator<=>(const Found&) const = default;
};
using Lowest = std::map<Found, int64_t>;  // the lowest byte

Program makeProgram(Seeded& random) {
  constexpr uint32_t kPool[] = {0, 1, 5, 31, 32, 40, 64, 65, 100};
  constexpr uint32_t kValues[] = {0, 0, 0, 256, 7};
  const auto below = [&](uint64_t end) { return static_cast<uint32_t>(random.below(end)); };
  Program program;
  const uint32_t count = 1 + below(5);
  for (uint32_t i = 0; i < count; ++i) {
    program.meetings.push_back(static_cast<Meeting>(below(static_cast<uint32_t>(Meeting::count))));
  }
  // Some programs have few lines that many lanes execute, others many lines.
  const uint32_t firstAction = 1 + below(8), actions = below(2) == 0 ? 8 : 1 + below(3);
  std::set<std::pair<uint32_t, uint32_t>> taken;
  for (uint32_t left = 2 + below(14); left > 0; --left) {
    Step step{.thread = kPool[below(std::size(kPool))], .step = below(count)};
    step.action = 1 + (firstAction + below(actions)) % 8;
    step.offset = step.bytes() == 4 ? 4 * below(2) : below(8);
    step.value = kValues[below(std::size(kValues))];
    if (taken.insert({step.thread, step.step}).second) program.steps.push_back(step);
  }
  return program;
}

// ---- The model ----

class Model {
 public:
  explicit Model(const Program& program) : program_(program), raced_(program.steps.size()) {}

  Lowest findings() {
    comparePairs();
    findUnset();
    // One differing byte makes two writes an ordinary race.
    for (auto at = lowest_.begin(); at != lowest_.end();) {
      Found race = at->first;
      race.sameValue = false;
      const auto ordinary = at->first.sameValue ? lowest_.find(race) : lowest_.end();
      if (ordinary == lowest_.end()) {
        ++at;
        continue;
      }
      ordinary->second = std::min(ordinary->second, at->second);
      at = lowest_.erase(at);
    }
    for (auto& [found, rank] : lowest_) rank %= kRankOfGroup;
    return lowest_;
  }
  // Lines that read a word while others write some of its bytes: the order decides whether all its bytes were unset.
  const std::set<uint32_t>& undecided() const { return undecided_; }

 private:
  static constexpr int64_t kRankOfGroup = 1000;

  // The number of barriers before a step that order its memory, within a simdgroup or between simdgroups.
  uint32_t epoch(const Step& step, bool sameSimdgroup) const {
    uint32_t count = 0;
    for (uint32_t i = 0; i < step.step; ++i) {
      const Meeting meeting = program_.meetings[i];
      const bool orders = orderedBy(meeting) & (step.inDevice() ? kOrdersDevice : kOrdersThreadgroup);
      count += orders && (sameSimdgroup || isOfThreadgroup(meeting));
    }
    return count;
  }

  void note(Found found, uint32_t group, uint32_t byte) {
    const int64_t rank = group * kRankOfGroup + byte;
    const auto [at, isNew] = lowest_.try_emplace(std::move(found), rank);
    at->second = std::min(at->second, rank);
  }

  void comparePairs() {
    const auto& steps = program_.steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      for (size_t j = i + 1; j < steps.size(); ++j) {
        const Step &a = steps[i], &b = steps[j];
        if (a.thread == b.thread || a.inDevice() != b.inDevice() || !(a.writes() || b.writes())) continue;
        const bool crossing = a.group() != b.group(), together = a.thread / 32 == b.thread / 32;
        if (crossing ? !a.inDevice() : epoch(a, together) != epoch(b, together)) continue;
        const FindingKind kind = crossing   ? FindingKind::raceInGrid
                                 : together ? FindingKind::raceInSimdgroup
                                            : FindingKind::raceInThreadgroup;
        for (uint32_t byte = 0; byte < kSpace; ++byte) {
          if (a.touches(byte) && b.touches(byte)) comparePair(i, j, kind, byte);
        }
      }
    }
  }

  void comparePair(size_t i, size_t j, FindingKind kind, uint32_t byte) {
    const Step &a = program_.steps[i], &b = program_.steps[j];
    bool same = a.writes() && b.writes() && a.byteAt(byte) == b.byteAt(byte);
    if (kind == FindingKind::raceInGrid) {  // the lowest lane represents the first threadgroup
      const Step &first = a.thread < b.thread ? a : b, &second = a.thread < b.thread ? b : a;
      bool allSame = a.writes() && b.writes();
      for (const Step& peer : program_.steps) {
        if (!peer.inDevice() || peer.group() != 0 || peer.writes() != first.writes() || !peer.touches(byte)) continue;
        if (std::pair(peer.thread, peer.step) < std::pair(first.thread, first.step)) return;
        allSame = allSame && peer.byteAt(byte) == second.byteAt(byte);
      }
      same = allSame;
    }
    note({kind, same, {a.action, b.action}}, std::max(a.group(), b.group()), byte);
    raced_[i].insert(byte);
    raced_[j].insert(byte);
  }

  bool isSet(const Step& reader, uint32_t byte) const {
    for (const Step& w : program_.steps) {
      if (!w.writes() || w.inDevice() || !w.touches(byte) || w.group() != reader.group()) continue;
      const bool together = w.thread / 32 == reader.thread / 32;
      if (w.thread == reader.thread ? w.step < reader.step : epoch(w, together) < epoch(reader, together)) return true;
    }
    return false;
  }

  void findUnset() {
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& reader = program_.steps[i];
      if (reader.inDevice() || reader.writes()) continue;
      if (reader.bytes() > 1 && !raced_[i].empty()) undecided_.insert(reader.action);
      // Unset bytes beside set ones may be padding.
      bool anySet = false;
      for (uint32_t byte = reader.offset; byte < reader.offset + reader.bytes(); ++byte) anySet |= isSet(reader, byte);
      if (anySet) continue;
      for (uint32_t byte = reader.offset; byte < reader.offset + reader.bytes(); ++byte) {
        // Reads of one simdgroup from one line between two threadgroup barriers share one finding.
        bool excused = false;
        for (size_t k = 0; k < program_.steps.size(); ++k) {
          const Step& other = program_.steps[k];
          excused |= other.action == reader.action && other.thread / 32 == reader.thread / 32 &&
                     epoch(other, false) == epoch(reader, false) && other.touches(byte) && raced_[k].contains(byte);
        }
        if (!excused) {
          note({FindingKind::uninitialized, false, {reader.action}}, reader.group(), byte);
        }
      }
    }
  }

  const Program& program_;
  std::vector<std::set<uint32_t>> raced_;
  Lowest lowest_;
  std::set<uint32_t> undecided_;
};

// ---- The same program on shadow memory ----

class Execution {
 public:
  Execution(const Program& program, Seeded& random) : program_(program), random_(random), shadow_(findings_) {
    shadow_.addDeviceRegion(device_.data(), kSpace);
  }

  Lowest findings() {
    for (uint32_t group = 0; group < kGroups; ++group) runGroup(group);
    Lowest lowest;
    text_.clear();
    const auto found = findings_.describe([](Place place) { return fmt::format("line {}", place); },
                                          [](const Sighting&) { return "memory"; }, false);
    for (const Finding& finding : found) {
      const std::set<uint32_t> actions{static_cast<uint32_t>(finding.first), static_cast<uint32_t>(finding.second)};
      lowest[{finding.kind, finding.sameValue, actions}] = finding.offset;
      text_ += finding.text + "\n";
    }
    return lowest;
  }
  const std::string& text() const { return text_; }  // the findings, with the lanes involved

 private:
  void runGroup(uint32_t group) {
    shadow_.beginThreadgroup(group, arena_.data(), arena_.size());
    shadow_.addThreadgroupArray(0, kSpace);
    uint32_t next[kThreads] = {};
    const auto stepCount = static_cast<uint32_t>(program_.meetings.size());
    for (uint32_t left = kThreads * stepCount; left > 0; --left) {
      auto lane = static_cast<uint32_t>(random_.below(kThreads));
      while (next[lane] == stepCount || isBlocked(next, lane)) lane = (lane + 1) % kThreads;
      perform(group * kThreads + lane, next[lane]++, lane);
      fence(next, lane);
    }
    shadow_.endThreadgroup();
  }

  // Whether a lane that this one waits for has not finished the previous step.
  bool isBlocked(const uint32_t* next, uint32_t lane) const {
    const uint32_t own = next[lane];
    if (own == 0) return false;
    const Meeting meeting = program_.meetings[own - 1];
    if (meeting == Meeting::none) return false;
    const bool all = isOfThreadgroup(meeting);
    const uint32_t* other = next + (all ? 0 : lane / 32 * 32);
    for (const uint32_t* const end = other + (all ? kThreads : 32); other != end; ++other) {
      if (*other < own) return true;
    }
    return false;
  }

  // Reports the barrier after this lane's step if this lane is the last to arrive.
  void fence(const uint32_t* next, uint32_t lane) {
    const Meeting meeting = program_.meetings[next[lane] - 1];
    if (meeting == Meeting::none || isBlocked(next, lane)) return;
    if (isOfThreadgroup(meeting)) return shadow_.threadgroupFence(orderedBy(meeting));
    shadow_.simdgroupFence(lane / 32, orderedBy(meeting));
  }

  void perform(uint32_t thread, uint32_t step, uint32_t lane) {
    for (const Step& action : program_.steps) {
      if (action.thread != thread || action.step != step) continue;
      auto& memory = action.inDevice() ? device_ : arena_;
      if (action.writes()) std::memcpy(&memory[action.offset], &action.value, action.bytes());
      const AccessKind kind = action.writes() ? AccessKind::write : AccessKind::read;
      const uint32_t region = action.inDevice() ? 0 : kArenaRegion;
      shadow_.enter(region, action.offset, action.bytes(), kind, lane, action.action);
    }
  }

  const Program& program_;
  Seeded& random_;
  std::string text_;
  Findings findings_;
  Shadow shadow_;
  std::array<std::byte, kSpace> device_ = {}, arena_ = {};
};

void removeUndecided(Lowest& lowest, const std::set<uint32_t>& undecided) {
  std::erase_if(lowest, [&](const auto& entry) {
    return entry.first.kind == FindingKind::uninitialized && undecided.contains(*entry.first.actions.begin());
  });
}

std::string text(const Lowest& lowest) {
  std::string result;
  for (const auto& [found, byte] : lowest) {
    result += fmt::format("kind {}{} lines", static_cast<int>(found.kind), found.sameValue ? " same" : "");
    for (const uint32_t action : found.actions) result += fmt::format(" {}", action);
    result += fmt::format(" at {}; ", byte);
  }
  return result;
}

}  // namespace

TEST(ShadowModel, AgreesWithAllPairsOfAccesses) {
  Seeded random(5);
  std::map<FindingKind, int> kinds;
  int clean = 0, sameValue = 0;
  for (int round = 0; round < 6000; ++round) {
    const Program program = makeProgram(random);
    Model model(program);
    Lowest expected = model.findings();
    removeUndecided(expected, model.undecided());
    if (expected.empty()) ++clean;
    for (const auto& [found, byte] : expected) found.sameValue ? ++sameValue : ++kinds[found.kind];
    std::set<std::string> texts;
    for (int order = 0; order < 4; ++order) {
      Execution execution(program, random);
      Lowest got = execution.findings();
      removeUndecided(got, model.undecided());
      if (model.undecided().empty()) texts.insert(execution.text());
      if (texts.size() > 1) {
        fail(__FILE__, __LINE__,
             fmt::format("program {}: the order decides: {} or {}", round, *texts.begin(), *texts.rbegin()));
        return;
      }
      if (got == expected) continue;
      fail(__FILE__, __LINE__,
           fmt::format("program {}, order {}: got {}, expected {}", round, order, text(got), text(expected)));
      return;
    }
  }
  EXPECT_EQ(kinds.size(), 4u);  // every kind that needs no bounds or declarations
  EXPECT(sameValue > 100);
  EXPECT(clean > 100);
}
