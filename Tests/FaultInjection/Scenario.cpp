#include "Scenario.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "Ops/Common/BindingCases.hpp"

namespace mnk::inject {

namespace {

// Aligned to pages, so that Metal can wrap it.
alignas(16384) float wrappedMemory[16384 / sizeof(float)];

// Whether work reads memory that it writes: if it failed, it would fail again.
bool readsItself(const Plan& plan) {
  std::set<const Buffer*> read, written;
  for (const Dispatch& dispatch : plan.dispatches) {
    for (const Binding& binding : dispatch.buffers) {
      if (!binding.reads.empty()) read.insert(binding.buffer.get());
      if (!binding.writes.empty()) written.insert(binding.buffer.get());
    }
  }
  return std::ranges::any_of(read, [&](const Buffer* buffer) { return buffer && written.contains(buffer); });
}

// Calls of every op: the first, the middle and the last of the tests' cases that can be made again, and one that breaks
// a rule.
struct Cases {
  std::vector<const test::BindingCase*> valid;
  const test::BindingCase* broken = nullptr;
};
Cases chooseCases(const std::shared_ptr<Device>& device) {
  Cases chosen;
  std::map<std::string_view, std::vector<const test::BindingCase*>> valid;
  for (const test::BindingCase& one : test::bindingCases()) {
    test::BindingMemory memory(device);
    const auto planned =
        std::visit([&](const auto& op) { return test::planFor(op, device.get()); }, one.makeOp(memory));
    if (!planned && planned.error().code == ErrorCode::invalidArgument) chosen.broken = &one;
    if (planned && !planned->dispatches.empty() && !readsItself(*planned)) valid[one.op].push_back(&one);
  }
  for (const auto& [op, all] : valid) {
    chosen.valid.insert(chosen.valid.end(), {all.front(), all[all.size() / 2], all.back()});
  }
  return chosen;
}

class Scenario {
 public:
  Scenario(Session& session, const Setting& setting, Numbers& expected, Tally& tally)
      : session_(session), setting_(setting), expected_(expected), tally_(tally) {}

  void run() {
    if (setting_.isCold) require(session_.makeDevice(setting_.isMetal));
    switch (setting_.part) {
      case Part::library:
        require(session_.compile());
        break;
      case Part::ops:
        useOps();
        break;
      case Part::denseCache:
      case Part::quantizedCache:
        useCache(setting_.part == Part::quantizedCache);
        break;
      case Part::files:
        useFiles();
        break;
    }
    session_.dropTensors();
    if (setting_.isCold) session_.dropDevice();
    eventually("finished handlers ran once for each successful commit", [&] { return finished_ == commits_; });
    eventually("wrapped memory is released once for each call", [&] { return released_ == wraps_; });
  }

 private:
  void useOps() {
    static const Cases cases = chooseCases(session_.device());
    test::BindingMemory memory(session_.device());
    const auto stepsOf = [&](const test::BindingCase* one) {
      return std::visit([&](const auto& op) { return session_.stepsOf(op); }, one->makeOp(memory));
    };
    std::vector<Step> encodes;
    for (const test::BindingCase* one : cases.valid) {
      const Session::OpSteps steps = stepsOf(one);
      require(steps.plan);
      encodes.push_back(steps.encode);
    }
    const Session::OpSteps broken = stepsOf(cases.broken);
    requireBrokenRule(broken.plan);
    submit(encodes, [&] { requireBrokenRule(broken.encode); });
    std::vector<float> numbers;
    for (const std::byte byte : memory.bytes()) numbers.push_back(static_cast<float>(std::to_integer<int>(byte)));
    compare("bytes of ops", numbers);
  }

  void makeTensors() {
    for (uint8_t name = 0; name < kRowKeys; ++name) {
      if (name != kQueries) require(session_.makeTensor(static_cast<Name>(name)));
    }
    require([&] {
      ++wraps_;
      const Status status = session_.wrap(kQueries, wrappedMemory, &released_)();
      if (!status.succeeded && released_ != wraps_)
        throw Wrong("a call that failed did not release its memory at once");
      return status;
    });
    std::vector<float> numbers(kElements);
    for (const Name name : {kKeys, kValues, kQueries}) {
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(0.37f * static_cast<float>(i + 100 * name));
      require(session_.write(name, numbers));
    }
    require(session_.slice(kRowKeys, kKeys, 0, 2));
    require(session_.slice(kRowValues, kValues, 0, 2));
    require(session_.slice(kRowQueries, kQueries, 1, 2));
    require(session_.reshape(kReshaped, kKeys));
  }

  void useCache(bool isQuantized) {
    makeTensors();
    const std::string of = isQuantized ? "quantized cache" : "dense cache";
    require(session_.makeCache(isQuantized, kCapacity));
    hasCache_ = true;
    positions_ = {};
    require(session_.prepare(tuning_, kTokens));  // no file: the cache is too short to measure
    submit({session_.encode(CacheCall::append, {0}), session_.encode(CacheCall::attend, {0})});
    moveTo({3, 0, 0});
    compare(of + ", first step", kAttended);
    submit({session_.encode(CacheCall::append, {0, 1}), session_.encode(CacheCall::attend, {0, 1})});
    moveTo({4, 1, 0});
    compare(of + ", rows of several sequences", kRowAttended);
    submit({session_.encode(CacheCall::both, {0})});
    moveTo({7, 1, 0});
    compare(of + ", appendAndAttend", kAttended);
    submit({session_.copy(0, 2), session_.encode(CacheCall::attend, {2})});
    moveTo({7, 1, 7});
    compare(of + ", a copy", kAttended);
    submit({session_.grow(12), session_.copyToLarger(0, 1)});
    require(session_.truncate(4, 0));
    moveTo({4, 1, 7});
    if (isQuantized) {
      submit({session_.dequantize(0)});
      compare(of, kReadKeys);
      compare(of, kReadValues);
    }
    submit({session_.encode(CacheCall::attend, {0})});
    compare(of + ", truncated", kAttended);
    submit({session_.encode(CacheCall::both, {0}, Rotation::listed)});
    moveTo({7, 1, 7});
    compare(of + ", rotated by listed positions", kAttended);
    require(session_.truncate(4, 0));
    moveTo({4, 1, 7});
    require(session_.text());
    useStep(of);

    saveAndLoad();
    submit({session_.encode(CacheCall::attend, {0})});
    compare(of + ", truncated", kAttended);  // the file held the same
    session_.dropCache();
    hasCache_ = false;
  }

  // The device knows the fastest kernels from the first run, so that later runs write the tuning file without
  // measuring.
  void useFiles() {
    require(session_.makeCache(false, kMeasuredCapacity));
    hasCache_ = true;
    positions_ = {};
    for (int i = 0; i < 2; ++i) {  // writes the file, then reads it
      require(session_.prepare(tuning_, 1));
      if (::access(tuning_.c_str(), R_OK) != 0) throw Wrong("prepare succeeded without its file");
    }
    saveAndLoad();
    ::unlink(tuning_.c_str());
    session_.dropCache();
    hasCache_ = false;
  }

  // A second save replaces the file.
  void saveAndLoad() {
    for (int i = 0; i < 2; ++i) require(session_.save(path_));
    require(session_.load(path_));
    ::unlink(path_.c_str());
    checkPositions();
  }

  // A recorded step with a rotation by the next positions and a call that rotates, appends and attends.
  void useStep(const std::string& of) {
    record({session_.rotate(), session_.encode(CacheCall::both, {1}, Rotation::ofCache)});
    checkPositions();
    const auto compareRun = [&](const std::string& run) {
      moveTo({4, positions_[1] + kTokens, 7});
      for (const Name name : {kAttended, kRotatedQueries, kRotatedKeys}) compare(of + run, name);
    };
    submit({session_.encodeStep()});
    compareRun(", recorded step");
    runStep();
    compareRun(", recorded step run again");
    require(session_.truncate(1, 1));
    moveTo({4, 1, 7});
    runStep();
    compareRun(", recorded step");  // from its first position
    require(session_.truncate(1, 1));
    moveTo({4, 1, 7});
  }

  // Requires that a call ends as expected, at the latest once memory is available.
  void requireEnd(const Step& step, bool succeeds, ErrorCode code) {
    const auto isWanted = [&](const Status& status) {
      return status.succeeded == succeeds && (succeeds || status.code == code);
    };
    Status status = step();
    if (isWanted(status)) {
      ++tally_.succeeded;
      return;
    }
    noteOutOfMemory(status);
    status = step();
    if (!isWanted(status)) throw Wrong(fmt::format("made again with memory, the call ended with: {}", textOf(status)));
  }
  void require(const Step& step) { requireEnd(step, true, {}); }
  void requireBrokenRule(const Step& step) { requireEnd(step, false, ErrorCode::invalidArgument); }

  // Checks an out-of-memory error. Memory is available afterwards.
  void noteOutOfMemory(const Status& status) {
    ++tally_.failed;
    const uint64_t failed = failedAllocations();
    inject::stop();
    if (status.succeeded || status.code != ErrorCode::outOfMemory || failed == 0) {
      throw Wrong(fmt::format("the call ended with: {}", textOf(status)));
    }
    checkPositions();
    for (const auto& entry : std::filesystem::directory_iterator(setting_.folder)) {
      if (entry.path() != path_ && entry.path() != tuning_) throw Wrong("a failed call left " + entry.path().string());
    }
  }

  // Records and runs; retries if the work failed or the encoder holds part of a call.
  void submit(
      const std::vector<Step>& encodes, const std::function<void()>& between = [] {}) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      require(session_.makeEncoder());
      if (commits_ % 2 == 1) require(session_.measureOps());
      if (!encodeAll(encodes)) {
        checkPositions();
        continue;
      }
      between();
      if (finishes(session_.commit(&finished_))) return;
    }
    throw Wrong("the work failed again when there was memory");
  }

  // Records a step; retries if the encoder holds part of a call.
  void record(const std::vector<Step>& encodes) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      require(session_.makeRecording());
      if (encodeAll(encodes)) return require(session_.makeStep());
      checkPositions();
    }
    throw Wrong("a recording failed again when there was memory");
  }

  void runStep() {
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (finishes(session_.runStep(&finished_))) return;
    }
    throw Wrong("a step failed again when there was memory");
  }

  // Commits and waits. Returns false if the work itself failed.
  bool finishes(const Step& commit) {
    const int before = finished_;
    requireCommit(commit);
    const bool isDone = waits();
    eventually("the finished handler runs once", [&] { return finished_ == before + 1; });
    if (!isDone) recover();
    return isDone;
  }

  // Returns false if the encoder cannot continue.
  bool encodeAll(const std::vector<Step>& encodes) {
    for (const Step& encode : encodes) {
      Status status = encode();
      if (status.succeeded) {
        ++tally_.succeeded;
        continue;
      }
      noteOutOfMemory(status);
      status = encode();
      if (status.succeeded) continue;
      if (status.code != ErrorCode::outOfMemory) throw Wrong("made again, the call ended with: " + textOf(status));
      return false;
    }
    return true;
  }

  void requireCommit(const Step& commit) {
    require([&] {
      const int before = finished_;
      const Status status = commit();
      if (status.succeeded) {
        ++commits_;
      } else if (finished_ != before) {
        throw Wrong("the finished handler of a failed commit ran");
      }
      return status;
    });
  }

  // Returns false if the work itself failed.
  bool waits() {
    Status status = session_.wait();
    if (status.succeeded) {
      ++tally_.succeeded;
      return true;
    }
    ++tally_.failed;
    const uint64_t failed = failedAllocations();
    inject::stop();
    if (status.code != ErrorCode::outOfMemory || failed == 0) throw Wrong("the work ended with: " + textOf(status));
    return session_.wait().succeeded;
  }

  // A failed step leaves sequences suspect; this truncates them to their previous positions.
  void recover() {
    for (uint32_t sequence = 0; hasCache_ && sequence < kSequences; ++sequence) {
      if (isAtPosition(sequence)) continue;
      require(session_.truncate(positions_[sequence], sequence));
    }
    checkPositions();
  }

  void moveTo(const std::array<uint64_t, kSequences>& positions) {
    positions_ = positions;
    checkPositions();
  }
  bool isAtPosition(uint32_t sequence) const {
    const mnk_sequence_state state = session_.sequence(sequence);
    return state.next_position == positions_[sequence] && !state.is_suspect;
  }
  void checkPositions() {
    for (uint32_t sequence = 0; hasCache_ && sequence < kSequences; ++sequence) {
      if (isAtPosition(sequence)) continue;
      const mnk_sequence_state state = session_.sequence(sequence);
      throw Wrong(fmt::format("sequence {} is at position {}{}, expected {}", sequence, state.next_position,
                              state.is_suspect ? " and suspect" : "", positions_[sequence]));
    }
  }

  void compare(const std::string& of, Name name) {
    std::vector<float> numbers(shapeOf(name)[0] * kHeads * kHeadDim);
    require(session_.read(name, numbers));
    compare(fmt::format("{}, tensor {}", of, static_cast<int>(name)), numbers);
  }
  void compare(const std::string& of, const std::vector<float>& numbers) {
    const auto& expected = expected_.try_emplace(of, numbers).first->second;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (std::abs(numbers[i] - expected[i]) <= 1e-5f * (1 + std::abs(expected[i]))) continue;
      throw Wrong(fmt::format("{}: element {} is {}, expected {}", of, i, numbers[i], expected[i]));
    }
  }

  // Waits for events on a device's thread.
  static void eventually(const char* what, const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (std::chrono::steady_clock::now() < end) {
      if (holds()) return;
      std::this_thread::yield();
    }
    throw Wrong(fmt::format("it does not hold that {}", what));
  }

  static uint64_t failedAllocations() { return inject::failed(); }
  static std::string textOf(const Status& status) { return status.succeeded ? "success" : status.message; }

  Session& session_;
  const Setting& setting_;
  const std::string path_ = setting_.folder + "/cache", tuning_ = setting_.folder + "/tuning";
  Numbers& expected_;
  Tally& tally_;
  // No work outlives these: the session waits for everything it commits.
  std::atomic<int> finished_ = 0, released_ = 0;
  int commits_ = 0, wraps_ = 0;
  bool hasCache_ = false;
  std::array<uint64_t, kSequences> positions_ = {};
};

}  // namespace

void runScenario(Session& session, const Setting& setting, Numbers& expected, Tally& tally) {
  Scenario(session, setting, expected, tally).run();
}

}  // namespace mnk::inject
