// Checks what an encoder has bound against a dispatch, and makes of both what the Host device runs.
#pragma once
#include <optional>

#include "SoftEncoder.hpp"

namespace softmetal {

class DispatchMaker {
 public:
  explicit DispatchMaker(SoftEncoder& encoder) : encoder_(encoder) {}

  // Nothing where a rule is broken; all that are broken have been told.
  std::optional<RecordedStep> make(mnk::Grid::Unit unit, MTL::Size extent, MTL::Size group);

 private:
  void checkGrid(mnk::Grid::Unit unit, MTL::Size extent, MTL::Size group);
  void checkThreadgroupMemory();
  void readDeclarations();
  void bind(const mnk::Pipeline::Argument& argument, mnk::Dispatch& dispatch);
  void bindBuffer(const mnk::Pipeline::Argument& argument, const BufferSlot& slot, mnk::Dispatch& dispatch);
  void declare(mnk::Binding& binding, const BufferSlot& slot, bool isReadOnly);
  void checkHazards(const mnk::Dispatch& dispatch);
  void refuse(std::string what);

  SoftEncoder& encoder_;
  bool isFine_ = true;
  std::optional<DeclaredAccesses> declared_;
};

}  // namespace softmetal
