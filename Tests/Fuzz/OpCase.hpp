// The part that all ops share: a call is recorded into an encoder, alone or after a valid one, and the encoder runs.
// Refused calls must leave the encoder and all memory as they were; accepted ones must do what their reference does.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "Target.hpp"

namespace mnk::fuzz {

// One call of an op, with operands placed in the arena. What it says of itself must not come from the code under test.
class OpCall {
 public:
  virtual ~OpCall() = default;
  virtual std::string text() const = 0;

  // What the error must say, whatever the encoder; empty where the call is valid.
  virtual std::string refusal() const = 0;
  // Whether a valid call has anything to run.
  virtual bool isEmpty() const = 0;
  // Whether memory that it would use belongs to another device than the one that encodes.
  virtual bool isForeign() const = 0;

  virtual mnk_plan* makePlan(mnk_error_out error) const = 0;
  virtual bool encode(mnk_encoder* encoder, mnk_error_out error) const = 0;
  // Changes the arena's images as a valid call must. Returns the bytes written, or kUnknown.
  static constexpr uint64_t kUnknown = UINT64_MAX;
  virtual uint64_t apply(Arena& arena) const = 0;
};

enum class Wish { valid, anything };
// Which regions the operands of a call may use: the first one must not have its operands overwritten by the second.
enum class Bank { first, second };
using MakeOpCall = std::unique_ptr<OpCall> (*)(Arena& arena, Seeded& random, Wish wish, Bank bank);

std::unique_ptr<Case> makeOpCase(Arena& arena, Seeded& random, MakeOpCall make);

// What errors of every op's calls say.
std::vector<std::string_view> encoderRefusals();

}  // namespace mnk::fuzz
