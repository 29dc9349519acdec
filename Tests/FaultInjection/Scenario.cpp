#include "Scenario.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "CAPI/CStructs.hpp"
#include "CAPI/Handles.hpp"
#include "Calls.hpp"
#include "MLXNativeKernels/mnk_metal.h"

namespace mnk::inject {

namespace {

// Sizes: heads of queries and of the cache, elements of a vector, tokens of a step, slots.
constexpr uint32_t kHeads = 2, kHeadDim = 64, kTokens = 3, kCapacity = 8, kMeasuredCapacity = 256, kSequences = 3;
// Tensors of f32, [rows, heads, head dim]. The first three are filled with numbers; those from kRowKeys on are views of
// others.
enum Name : uint8_t {
  kKeys,
  kValues,
  kQueries,
  kAttended,
  kRowAttended,
  kReadKeys,
  kReadValues,
  kRotatedQueries,
  kRotatedKeys,
  kRowKeys,
  kRowValues,
  kRowQueries,
  kReshaped,
  kNames
};

enum class CacheCall : uint8_t { append, attend, both };
enum class Rotation : uint8_t { none, ofCache, listed };  // of a step; listed: by the cache's next positions

constexpr mnk_rotary_embedding kRotary{.layout = MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT, .base = 10000, .scale = 1};
// Aligned to pages, so that Metal can wrap it.
alignas(16384) float wrappedMemory[16384 / sizeof(float)];

std::array<uint64_t, 3> shapeOf(Name name) {
  const bool areRows = name == kRowAttended || (name >= kRowKeys && name <= kRowQueries);
  return {areRows ? 2 : kTokens, kHeads, kHeadDim};
}

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

// Waits for events on a device's thread.
void eventually(const char* what, const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end) {
    if (holds()) return;
    std::this_thread::yield();
  }
  throw Wrong(fmt::format("it does not hold that {}", what));
}

std::string textOf(const Status& status) {
  return status.succeeded ? "success" : status.message;
}

void countFinished(void* counter, const mnk_error*) {
  count(counter);
}

class CScenario final : public Scenario {
 public:
  explicit CScenario(Setting setting) : setting_(std::move(setting)) {
    if (!setting_.isCold) (void)makeDevice()();
  }

  ~CScenario() override {
    CScenario::clear();
    drop(device_);
  }

  void clear() override {
    drop(encoder_);
    drop(completion_);
    drop(step_);
    dropCache();
    for (mnk_tensor*& tensor : tensors_) drop(tensor);
    if (setting_.isCold) drop(device_);
  }

  void run() override {
    finished_ = released_ = commits_ = wraps_ = 0;
    if (setting_.isCold) require(makeDevice());
    switch (setting_.part) {
      case Part::library:
        require(compile());
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
    clear();
    eventually("finished handlers ran once for each successful commit", [&] { return finished_ == commits_; });
    eventually("wrapped memory is released once for each call", [&] { return released_ == wraps_; });
  }

 private:
  void useOps() {
    static const Cases cases = chooseCases(device_->device);
    test::BindingMemory memory(device_->device);
    const auto stepsOfCase = [&](const test::BindingCase* one) {
      return std::visit([&](const auto& op) { return stepsOf(op); }, one->makeOp(memory));
    };
    std::vector<Step> encodes;
    for (const test::BindingCase* one : cases.valid) {
      const OpSteps steps = stepsOfCase(one);
      require(steps.plan);
      encodes.push_back(steps.encode);
    }
    const OpSteps broken = stepsOfCase(cases.broken);
    requireBrokenRule(broken.plan);
    submit(encodes, [&] { requireBrokenRule(broken.encode); });
    std::vector<float> numbers;
    for (const std::byte byte : memory.bytes()) numbers.push_back(static_cast<float>(std::to_integer<int>(byte)));
    compare("bytes of ops", numbers);
  }

  void makeTensors() {
    for (uint8_t name = 0; name < kRowKeys; ++name) {
      const std::array<uint64_t, 3> shape = shapeOf(static_cast<Name>(name));
      if (name != kQueries) require(MAKES(tensors_[name], mnk_tensor_make, device_, MNK_F32, shape.data(), 3));
    }
    require(wrap(kQueries));
    std::vector<float> numbers(kTokens * kHeads * kHeadDim);
    for (const Name name : {kKeys, kValues, kQueries}) {
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(0.37f * static_cast<float>(i + 100 * name));
      require([&] { return RUN(mnk_tensor_write, tensors_[name], numbers.data(), numbers.size() * sizeof(float)); });
    }
    require(MAKES(tensors_[kRowKeys], mnk_tensor_make_slice, tensors_[kKeys], 0, 2));
    require(MAKES(tensors_[kRowValues], mnk_tensor_make_slice, tensors_[kValues], 0, 2));
    require(MAKES(tensors_[kRowQueries], mnk_tensor_make_slice, tensors_[kQueries], 1, 2));
    require(MAKES(tensors_[kReshaped], mnk_tensor_make_reshaped, tensors_[kKeys], shapeOf(kReshaped).data(), 3));
  }

  void useCache(bool isQuantized) {
    makeTensors();
    const std::string of = isQuantized ? "quantized cache" : "dense cache";
    require(makeCache(isQuantized, kCapacity));
    require(prepare(kTokens));  // no file: the cache is too short to measure
    submit({encode(CacheCall::append, {0}), encode(CacheCall::attend, {0})});
    moveTo({3, 0, 0});
    compare(of + ", first step", kAttended);
    submit({encode(CacheCall::append, {0, 1}), encode(CacheCall::attend, {0, 1})});
    moveTo({4, 1, 0});
    compare(of + ", rows of several sequences", kRowAttended);
    submit({encode(CacheCall::both, {0})});
    moveTo({7, 1, 0});
    compare(of + ", appendAndAttend", kAttended);
    submit({RUNS(mnk_encoder_copy_sequence, encoder_, cache_, 0, 2), encode(CacheCall::attend, {2})});
    moveTo({7, 1, 7});
    compare(of + ", a copy", kAttended);
    // A larger cache beside the cache.
    submit({MAKES(larger_, mnk_encoder_make_grown_cache, encoder_, cache_, 12),
            RUNS(mnk_encoder_copy_sequence_to_cache, encoder_, cache_, 0, larger_, 1)});
    truncate(4, 0);
    if (isQuantized) {
      submit({RUNS(mnk_encoder_dequantize, encoder_, cache_, tensors_[kReadKeys], tensors_[kReadValues], 0, 0,
                   MNK_KV_DOMAIN_ORIGINAL)});
      compare(of, kReadKeys);
      compare(of, kReadValues);
    }
    submit({encode(CacheCall::attend, {0})});
    compare(of + ", truncated", kAttended);
    submit({encode(CacheCall::both, {0}, Rotation::listed)});
    moveTo({7, 1, 7});
    compare(of + ", rotated by listed positions", kAttended);
    truncate(4, 0);
    require([this] { return copied(call("mnk_cache_copy_text", [&] { return mnk_cache_copy_text(cache_); })); });
    useStep(of);

    saveAndLoad();
    submit({encode(CacheCall::attend, {0})});
    compare(of + ", truncated", kAttended);  // the file held the same
    dropCache();
  }

  // A recorded step with a rotation by the next positions and a call that rotates, appends and attends.
  void useStep(const std::string& of) {
    record({rotate(), encode(CacheCall::both, {1}, Rotation::ofCache)});
    checkPositions();
    const auto compareRun = [&](const std::string& run) {
      moveTo({4, positions_[1] + kTokens, 7});
      for (const Name name : {kAttended, kRotatedQueries, kRotatedKeys}) compare(of + run, name);
    };
    submit({RUNS(mnk_encoder_encode_step, encoder_, step_)});
    compareRun(", recorded step");
    runStep();
    compareRun(", recorded step run again");
    truncate(1, 1);
    runStep();
    compareRun(", recorded step");  // from its first position
    truncate(1, 1);
  }

  // The device knows the fastest kernels from the first run, so that later runs write the tuning file without
  // measuring.
  void useFiles() {
    require(makeCache(false, kMeasuredCapacity));
    for (int i = 0; i < 2; ++i) {  // writes the file, then reads it
      require(prepare(1));
      if (::access(tuning_.c_str(), R_OK) != 0) throw Wrong("prepare succeeded without its file");
    }
    saveAndLoad();
    ::unlink(tuning_.c_str());
    dropCache();
  }

  // A second save replaces the file.
  void saveAndLoad() {
    for (int i = 0; i < 2; ++i) require(RUNS(mnk_cache_save, cache_, path_.c_str()));
    require(MAKES(cache_, mnk_cache_make_from_path, device_, path_.c_str(), 1 << 20, 0));
    ::unlink(path_.c_str());
    checkPositions();
  }

  void dropCache() {
    drop(cache_);
    drop(larger_);
    positions_ = {};
  }

  Step makeDevice() {
    return [this] {
      return inject::make("mnk_device_make", device_, [&](mnk_error_out error) {
        const mnk_host_options onHost{.workers = 2};
        const mnk_metal_options onMetal{};
        return setting_.isMetal ? mnk_device_make_metal(&onMetal, error) : mnk_device_make_host(&onHost, error);
      });
    };
  }

  // Compiles kernel text, then clears the device's registry.
  Step compile() {
    return [this] {
      static constexpr char kText[] =
          "kernel void injected(device float* numbers [[buffer(0)]]) { numbers[0] = 1; }\nexport_kernel(injected)\n";
      mnk_library* library = nullptr;
      const Status status =
          MAKE(library, mnk_library_make_from_text, device_, kText, "a label that is longer than any string");
      drop(library);
      call("mnk_device_clear_kernels", [&] { mnk_device_clear_kernels(device_); });
      return status;
    };
  }

  Step wrap(Name name) {
    return [=, this] {
      ++wraps_;
      const Status status = MAKE(tensors_[name], mnk_tensor_make_wrapping, device_, wrappedMemory, sizeof wrappedMemory,
                                 MNK_F32, shapeOf(name).data(), 3, 0, count, &released_);
      if (!status.succeeded && released_ != wraps_)
        throw Wrong("a call that failed did not release its memory at once");
      return status;
    };
  }

  // The steps that plan and encode an op.
  struct OpSteps {
    Step plan, encode;
  };
  template <typename Op>
  OpSteps stepsOf(const Op& of) {
    struct Kept {
      Op op;
      test::CStructs structs = {};
      decltype(structs.of(op)) given = structs.of(op);
    };
    const std::shared_ptr<Kept> kept(new Kept{of});
    const auto plan = [=, this] {
      mnk_plan* plan = nullptr;
      const Status status = inject::make("mnk_…_make_plan", plan, [&](mnk_error_out error) {
        return test::makePlan(test::cFunctionsOf<Op>().first, &kept->given, device_, error);
      });
      if (!status.succeeded) return status;
      call("mnk_plan_dispatch", [&] { return mnk_plan_dispatch(plan, 0).bytes_read + *mnk_plan_text(plan); });
      drop(plan);
      return Status();
    };
    const auto encode = [=, this] {
      return inject::run("mnk_encoder_…", [&](mnk_error_out error) {
        return test::cFunctionsOf<Op>().second(encoder_, &kept->given, error);
      });
    };
    return {plan, encode};
  }

  // Rotates by the next positions of the cache's sequence 1, in two entries.
  Step rotate() {
    return [this] {
      static constexpr uint32_t kListed[] = {1, 1}, kRows[] = {1, kTokens - 1};
      const mnk_multi_rope rope{
          .queries = view(kQueries),
          .keys = view(kKeys),
          .rotated_queries = view(kRotatedQueries),
          .rotated_keys = view(kRotatedKeys),
          .positions = {.cache = cache_, .sequences = kListed, .row_counts = kRows, .sequence_count = 2},
          .rotary = kRotary};
      return RUN(mnk_encoder_multi_rope, encoder_, &rope);
    };
  }

  mnk_heads_view view(Name name) const { return {.tensor = tensors_[name], .layout = MNK_KV_LAYOUT_TOKEN_MAJOR}; }

  Step makeCache(bool isQuantized, uint32_t capacity) {
    return [=, this] {
      const uint32_t bits = isQuantized ? 4 : 0;
      const mnk_attention_cache_descriptor descriptor{.kv_heads = kHeads,
                                                      .head_dim = kHeadDim,
                                                      .capacity = capacity,
                                                      .sequences = kSequences,
                                                      .dtype = MNK_F32,
                                                      .has_quantized = isQuantized,
                                                      .quantized = {.key_bits = bits, .value_bits = bits}};
      return MAKE(cache_, mnk_cache_make, device_, &descriptor);
    };
  }

  // With all tokens in one sequence, or with the tensors of rows in several.
  Step encode(CacheCall cacheCall, std::vector<uint32_t> sequences, Rotation rotation = Rotation::none) {
    return [=, this] {
      static constexpr uint32_t kRows = kTokens;
      const bool areRows = sequences.size() > 1;
      mnk_cache_step step{.sequences = sequences.data(), .sequence_count = sequences.size()};
      if (cacheCall != CacheCall::attend) {
        step.keys = view(areRows ? kRowKeys : kKeys);
        step.values = view(areRows ? kRowValues : kValues);
      }
      if (cacheCall != CacheCall::append) {
        step.queries = view(areRows ? kRowQueries : kQueries);
        step.results.output = tensors_[areRows ? kRowAttended : kAttended];
      }
      step.has_rotary = rotation != Rotation::none;
      if (step.has_rotary) step.rotary.embedding = kRotary;
      if (rotation == Rotation::listed) {
        step.rotary.positions = {
            .cache = cache_, .sequences = sequences.data(), .row_counts = &kRows, .sequence_count = 1};
      }
      if (cacheCall == CacheCall::append) return RUN(mnk_encoder_append, encoder_, cache_, &step);
      if (cacheCall == CacheCall::attend) return RUN(mnk_encoder_attend, encoder_, cache_, &step);
      return RUN(mnk_encoder_append_and_attend, encoder_, cache_, &step);
    };
  }

  Step prepare(uint32_t rows) {
    return [=, this] {
      const mnk_cache* caches[] = {cache_};
      const mnk_preparation preparation{.caches = caches,
                                        .cache_count = 1,
                                        .rows = rows,
                                        .dtype = MNK_F32,
                                        .has_rotary = true,
                                        .rotary = kRotary,
                                        .tuning = MNK_TUNING_MEASURE,
                                        .tuning_file = tuning_.c_str()};
      return RUN(mnk_device_prepare, device_, &preparation, nullptr);
    };
  }

  Status wait() {
    const Status waited = RUN(mnk_completion_wait, completion_);
    if (!waited.succeeded) return waited;
    return copied(call("mnk_completion_copy_text", [&] { return mnk_completion_copy_text(completion_); }));
  }

  // Requires that a call ends as expected, at the latest once memory is available.
  void requireEnd(const Step& step, bool succeeds, ErrorCode code) {
    const auto isWanted = [&](const Status& status) {
      return status.succeeded == succeeds && (succeeds || status.code == code);
    };
    Status status = step();
    if (isWanted(status)) {
      ++tally.succeeded;
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
    ++tally.failed;
    const uint64_t failures = failed();
    stop();
    if (status.succeeded || status.code != ErrorCode::outOfMemory || failures == 0) {
      throw Wrong(fmt::format("the call ended with: {}", textOf(status)));
    }
    checkPositions();
    for (const auto& entry : std::filesystem::directory_iterator(setting_.folder)) {
      if (entry.path() != path_ && entry.path() != tuning_) throw Wrong("a failed call left " + entry.path().string());
    }
  }

  // Work that failed, and an encoder that holds part of a call, are made again.
  static void requireTwice(const char* what, const std::function<bool()>& attempt) {
    if (!attempt() && !attempt()) throw Wrong(fmt::format("{} failed again when there was memory", what));
  }

  void submit(
      const std::vector<Step>& encodes, const std::function<void()>& between = [] {}) {
    requireTwice("the work", [&] {
      require(MAKES(encoder_, mnk_encoder_make, device_, "a label that is longer than any string holds in place"));
      if (commits_ % 2 == 1) require(RUNS(mnk_encoder_measure_ops, encoder_));
      if (!encodeAll(encodes)) return false;
      between();
      return finishes(MAKES(completion_, mnk_encoder_commit, encoder_, countFinished, &finished_));
    });
  }

  void record(const std::vector<Step>& encodes) {
    requireTwice("a recording", [&] {
      require(MAKES(encoder_, mnk_encoder_make_recording, device_, "a step"));
      if (!encodeAll(encodes)) return false;
      require(MAKES(step_, mnk_recorded_step_make, encoder_));
      return true;
    });
  }

  void runStep() {
    requireTwice("a step",
                 [&] { return finishes(MAKES(completion_, mnk_recorded_step_run, step_, countFinished, &finished_)); });
  }

  // Commits and waits. Returns false if the work itself failed.
  bool finishes(const Step& commit) {
    const int before = finished_;
    require([&] {
      const Status status = commit();
      if (!status.succeeded && finished_ != before) throw Wrong("the finished handler of a failed commit ran");
      return status;
    });
    ++commits_;
    const bool isDone = succeedsInTheEnd();
    eventually("the finished handler runs once", [&] { return finished_ == before + 1; });
    if (!isDone) recover();
    return isDone;
  }

  // Returns false if the encoder cannot continue.
  bool encodeAll(const std::vector<Step>& encodes) {
    for (const Step& encode : encodes) {
      Status status = encode();
      if (status.succeeded) {
        ++tally.succeeded;
        continue;
      }
      noteOutOfMemory(status);
      status = encode();
      if (status.succeeded) continue;
      if (status.code != ErrorCode::outOfMemory) throw Wrong("made again, the call ended with: " + textOf(status));
      checkPositions();
      return false;
    }
    return true;
  }

  // Waits. Returns false if the work itself failed.
  bool succeedsInTheEnd() {
    const Status status = wait();
    ++(status.succeeded ? tally.succeeded : tally.failed);
    if (status.succeeded) return true;
    const uint64_t failures = failed();
    stop();
    if (status.code != ErrorCode::outOfMemory || failures == 0) throw Wrong("the work ended with: " + textOf(status));
    return wait().succeeded;
  }

  // A failed step leaves sequences suspect; this truncates them to their previous positions.
  void recover() {
    for (uint32_t index = 0; cache_ && index < kSequences; ++index) {
      if (!misplaced(index).empty()) require(RUNS(mnk_cache_truncate, cache_, positions_[index], index));
    }
    checkPositions();
  }

  void moveTo(const std::array<uint64_t, kSequences>& positions) {
    positions_ = positions;
    checkPositions();
  }

  void truncate(uint64_t position, uint32_t index) {
    require(RUNS(mnk_cache_truncate, cache_, position, index));
    positions_[index] = position;
    checkPositions();
  }

  // Empty if a sequence is at its position.
  std::string misplaced(uint32_t index) const {
    mnk_sequence_state state{};
    mnk_cache_get_sequence(cache_, index, &state, nullptr);
    if (state.next_position == positions_[index] && !state.is_suspect) return {};
    return fmt::format("sequence {} is at position {}{}, expected {}", index, state.next_position,
                       state.is_suspect ? " and suspect" : "", positions_[index]);
  }
  void checkPositions() {
    for (uint32_t index = 0; cache_ && index < kSequences; ++index) {
      if (const std::string text = misplaced(index); !text.empty()) throw Wrong(text);
    }
  }

  void compare(const std::string& of, Name name) {
    std::vector<float> numbers(shapeOf(name)[0] * kHeads * kHeadDim);
    require([&] { return RUN(mnk_tensor_read, tensors_[name], numbers.data(), numbers.size() * sizeof(float)); });
    compare(fmt::format("{}, tensor {}", of, static_cast<int>(name)), numbers);
  }

  void compare(const std::string& of, const std::vector<float>& numbers) {
    const auto& expected = expected_.try_emplace(of, numbers).first->second;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (std::abs(numbers[i] - expected[i]) <= 1e-5f * (1 + std::abs(expected[i]))) continue;
      throw Wrong(fmt::format("{}: element {} is {}, expected {}", of, i, numbers[i], expected[i]));
    }
  }

  const Setting setting_;
  const std::string path_ = setting_.folder + "/cache", tuning_ = setting_.folder + "/tuning";
  std::map<std::string, std::vector<float>> expected_;  // the numbers read in a run without failures, by name
  mnk_device* device_ = nullptr;
  std::array<mnk_tensor*, kNames> tensors_ = {};
  mnk_encoder* encoder_ = nullptr;
  mnk_completion* completion_ = nullptr;
  mnk_recorded_step* step_ = nullptr;
  mnk_cache* cache_ = nullptr;
  mnk_cache* larger_ = nullptr;
  // No work outlives these: the scenario waits for everything it commits.
  std::atomic<int> finished_ = 0, released_ = 0;
  int commits_ = 0, wraps_ = 0;
  std::array<uint64_t, kSequences> positions_ = {};
};

}  // namespace

std::unique_ptr<Scenario> Scenario::make(const Setting& setting) {
  return std::make_unique<CScenario>(setting);
}

}  // namespace mnk::inject
