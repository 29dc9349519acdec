// Checks an encoder's bindings against a dispatch, and creates the dispatch that the Host device runs.
#pragma once
#include <optional>

#include "SoftEncoder.hpp"

namespace softmetal {

class DispatchMaker {
 public:
  explicit DispatchMaker(SoftEncoder& encoder) : encoder_(encoder) {}

  // Empty if a rule is broken; all violations have been recorded.
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
