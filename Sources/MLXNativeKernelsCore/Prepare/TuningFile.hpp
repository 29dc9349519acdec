// The file that stores a user's measured choices for one device. It is valid for one version of the system and of the
// shaders. A file of another version, or an invalid one, is ignored and rewritten.
#pragma once
#include <optional>
#include <string>

#include "MLXNativeKernels/Device.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"

namespace mnk {

inline constexpr std::string_view kPrepareName = "prepare";  // for messages

class TuningFile {
 public:
  // The file at this path, or, if it is empty, the device's file in the user's caches folder. Without such a folder,
  // nothing is stored.
  static TuningFile of(Device& device, const std::string& path);

  const std::string& path() const { return path_; }  // empty: nothing is stored
  std::optional<MeasuredTuning> load() const;
  // Fails if the caller's path names a file that is no tuning file: saving would destroy it.
  Result<void> checkReplaceable() const;
  Result<void> save(const MeasuredTuning& tuning) const;

 private:
  std::string heading_;  // the system and shaders that the choices are valid for
  std::string path_;
  bool makesFolder_ = false;
};

}  // namespace mnk
