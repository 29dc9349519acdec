// A participant of an encoder that does what a test says.
#pragma once
#include <functional>

#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

struct Witness : EncodingParticipant {
  std::function<Result<void>()> onCheck = [] { return Result<void>(); };
  std::function<void()> onAdvance = [] {};
  std::function<void(const Result<void>&)> onFinished = [](const Result<void>&) {};

  Result<void> check() override { return onCheck(); }
  void advance() noexcept override { onAdvance(); }
  void finished(const Result<void>& outcome) noexcept override { onFinished(outcome); }
};

}  // namespace mnk::test
