// The file in which a user's measured choices are kept, one for each device. It holds for one version of the system and
// of the shaders: of any other, or where anything in it is wrong, it counts as missing and is written again.
#pragma once
#include <optional>
#include <string>

#include "MLXNativeKernels/Device.hpp"
#include "Ops/FlashDecode/MeasuredTuning.hpp"

namespace mnk {

inline constexpr std::string_view kPrepareName = "prepare";  // in messages

class TuningFile {
 public:
  // The file of this path; without one, a file of the device's own in the user's folder for caches. Nothing is kept
  // where there is no such folder.
  static TuningFile of(Device& device, const std::string& path);

  const std::string& path() const { return path_; }  // empty: nothing is kept
  std::optional<MeasuredTuning> load() const;
  Result<void> save(const MeasuredTuning& tuning) const;

 private:
  std::string heading_;  // what the choices hold for
  std::string path_;
  bool makesFolder_ = false;
};

}  // namespace mnk
