#include "Prepare/TuningFile.hpp"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "Runtime/Stamp.h"
#include "Support/Crc32.hpp"
#include "Support/Errors.hpp"
#include "Support/File.hpp"

namespace mnk {

namespace {

constexpr std::string_view kTitleOfAny = "MLXNativeKernels tuning ";  // of every version
constexpr std::string_view kTitle = "MLXNativeKernels tuning 2";
constexpr std::string_view kColumns =
    "cache queries keyDim valueDim rows heads keys kernel rowsPerTile tileKeys simdgroups splits merge";
constexpr std::string_view kChecksum = "crc32 ";
constexpr uint64_t kMaxBytes = 256 * 1024;

// A system's name may contain line breaks.
std::string inOneLine(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

std::string systemText() {
  utsname system{};
  if (uname(&system) != 0) return "unknown";
  return inOneLine(fmt::format("{} {} {}", system.sysname, system.release, system.version));
}

std::string headingOf(Device& device) {
  const DeviceProfile profile = device.profile();
  return fmt::format("{}\ndevice {}, {}, {}, {}\nsystem {}\nshaders {}\n{}\n", kTitle, device.kind(),
                     inOneLine(device.name()), inOneLine(profile.family), countText(profile.cores, "core"),
                     systemText(), MNK_SHADER_STAMP, kColumns);
}

uint32_t checksum(std::string_view text) {
  Crc32 sum;
  sum.add(std::as_bytes(std::span(text)));
  return sum.value();
}

// The folder that an environment variable names; empty if it is not set or is a relative path.
std::string folderIn(const char* variable) {
  const char* value = std::getenv(variable);
  return value && value[0] == '/' ? value : "";
}

std::string cachesFolder() {
#if defined(__APPLE__)
  const std::string home = folderIn("HOME");  // in a sandbox, the app's container
  return home.empty() ? "" : home + "/Library/Caches";
#else
  if (const std::string own = folderIn("XDG_CACHE_HOME"); !own.empty()) return own;
  const std::string home = folderIn("HOME");
  return home.empty() ? "" : home + "/.cache";
#endif
}

// Creates the file's folder and its parent, readable only by the owner.
Result<void> makeFolder(const std::string& file) {
  const std::string folder = file.substr(0, file.rfind('/'));
  for (const std::string& path : {folder.substr(0, folder.rfind('/')), folder}) {
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      Error error =
          fileError(kPrepareName, "the folder for tuning cannot be made", path, errno, "Pass a tuning file elsewhere.");
      error.expected = "a folder that this process may write to";
      return error;
    }
  }
  return {};
}

}  // namespace

TuningFile TuningFile::of(Device& device, const std::string& path) {
  TuningFile file;
  file.heading_ = headingOf(device);
  file.path_ = path;
  const std::string folder = cachesFolder();
  if (!path.empty() || folder.empty()) return file;
  // Two devices with the same name share a file only if their profiles match.
  const DeviceProfile profile = device.profile();
  const std::string identity = fmt::format("{} {} {} {}", device.kind(), device.name(), profile.family, profile.cores);
  file.path_ = fmt::format("{}/MLXNativeKernels/tuning-{:08x}.txt", folder, checksum(identity));
  file.makesFolder_ = true;
  return file;
}

std::optional<MeasuredTuning> TuningFile::load() const {
  if (path_.empty()) return std::nullopt;
  auto opened = FileReader::open(kPrepareName, path_);
  if (!opened || opened->length() > kMaxBytes) return std::nullopt;
  std::string text(opened->length(), '\0');
  if (!opened->read(std::as_writable_bytes(std::span(text)))) return std::nullopt;
  const size_t last = text.rfind(kChecksum);
  if (last == text.npos || !text.starts_with(heading_) || last < heading_.size()) return std::nullopt;
  if (text.substr(last) != fmt::format("{}{:08x}\n", kChecksum, checksum(text.substr(0, last)))) return std::nullopt;
  return MeasuredTuning::parse(std::string_view(text).substr(heading_.size(), last - heading_.size()));
}

Result<void> TuningFile::checkReplaceable() const {
  if (path_.empty() || makesFolder_) return {};
  auto opened = FileReader::open(kPrepareName, path_);
  if (!opened) {
    const bool isNew = ::access(path_.c_str(), F_OK) != 0 && errno == ENOENT;
    return isNew ? Result<void>() : Result<void>(std::move(opened).error());
  }
  if (opened->length() == 0) return {};
  std::string start(std::min<uint64_t>(opened->length(), kTitleOfAny.size()), '\0');
  MNK_TRY(opened->read(std::as_writable_bytes(std::span(start))));
  if (start == kTitleOfAny) return {};
  return invalidArgument(kPrepareName, "the file is not a tuning file", path_, "no file, or one that prepare wrote",
                         "Pass another path, or delete the file.");
}

Result<void> TuningFile::save(const MeasuredTuning& tuning) const {
  if (path_.empty()) {
    return invalidArgument(kPrepareName, "there is no folder for caches", "no absolute path in HOME",
                           "the user's home folder", "Set HOME, or pass a tuning file.");
  }
  // A replacement keeps the mode, so it would be unreadable too.
  if (access(path_.c_str(), R_OK) != 0 && errno == EACCES) {
    return fileError(kPrepareName, "the tuning file cannot be read", path_, EACCES, "Change its mode, or delete it.");
  }
  if (makesFolder_) MNK_TRY(makeFolder(path_));
  MNK_TRY(checkReplaceable());
  std::string text = heading_ + tuning.lines();
  text += fmt::format("{}{:08x}\n", kChecksum, checksum(text));
  MNK_TRY(auto replacement, FileReplacement::make(kPrepareName, path_));
  MNK_TRY(replacement.write(std::as_bytes(std::span(text))));
  return replacement.commit();
}

}  // namespace mnk
