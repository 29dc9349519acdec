// One call of a cache program in numbers.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "Arena.hpp"
#include "CacheModel.hpp"
#include "CacheRotation.hpp"
#include "Target.hpp"

namespace mnk::fuzz {

enum class CacheCallKind : uint8_t { append, attend, appendAndAttend, rotate, copy, truncate, commit, drop, runStep };

// Numbers that attention must write, each of which may be off by the slack.
struct ExpectedNumbers {
  TensorSpec into;
  std::vector<double> numbers;
  double slack = 0;
};

struct CacheCall {
  CacheCallKind kind = CacheCallKind::append;
  bool hasEncoder = true, hasCache = true, hasStep = true;
  bool isCommitted = false;  // in an encoder that was committed before
  HeadsSpec queries, keys, values;
  std::vector<uint32_t> sequences, rowCounts;
  bool hasSequences = true, hasRowCounts = false;
  std::optional<size_t> sequenceCount;  // in place of the list's own
  bool hasResults = false, hasOptions = false;
  std::optional<TensorSpec> into;         // attention, or rotated queries
  std::optional<TensorSpec> rotatedKeys;  // which have the axes of the rotated queries
  bool isInPlace = false;                 // rotates queries and keys where they are
  mnk_attention_options options{};
  std::optional<CacheRotation> rotation;
  // From here on, calls are those of a step, which the commit makes and runs.
  bool beginsStep = false;
  bool isEncoded = false;             // a run of the step that other work could join
  uint64_t position = 0;              // of a cut
  uint32_t sequence = 0, target = 0;  // of a cut or a copy

  std::string refusal;                   // what the error must say; empty where the call is fine
  std::vector<Standing> committed;       // where sequences stand afterwards
  std::vector<ExpectedNumbers> results;  // of a commit or a run: all that it has attended to

  std::vector<StepEntry> entries() const;  // of a step without a mutation
  // What a rotation writes.
  HeadsSpec queriesInto() const;
  HeadsSpec keysInto() const;
  std::string text() const;  // without the fields of its struct
};

// Breaks one thing in a step that is fine, and says what the error must say of it. False where there is nothing of the
// kind that was drawn.
bool mutate(CacheCall& call, const CacheModel& model, Seeded& random);

struct CacheProgramSpec {
  CacheNumbers cache;
  std::vector<CacheCall> calls;
};
// Fills the memory of its operands.
CacheProgramSpec drawProgram(Arena& arena, Seeded& random);

// The structs of a step or a rotation, with the lists of the call.
struct CacheStep {
  mnk_cache_step step{};
  mnk_multi_rope rope{};
};
CacheStep stepOf(const CacheCall& call, const mnk_cache* cache, Arena& arena, Seeded& random);

// Calls on one cache through the C API, in encoders that are committed or dropped: appends, attends and copies with
// lists and views of any layout, and cuts. A model says where sequences must stand after each of them.
std::unique_ptr<Case> makeCacheProgram(Arena& arena, Seeded& random);
// What errors of its calls say.
std::vector<std::string_view> cacheProgramRefusals();

}  // namespace mnk::fuzz
