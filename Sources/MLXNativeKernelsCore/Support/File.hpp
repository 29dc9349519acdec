// Reads files from start to end, and replaces them once they are complete. Errors name the path and the system's error.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "MLXNativeKernels/Result.hpp"

namespace mnk {

// Closes the descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor();

  int get() const { return number_; }

 private:
  int number_;
};

// `number` is an errno value.
Error fileError(std::string_view op, std::string_view what, const std::string& path, int number, std::string_view fix);

class FileReader {
 public:
  // Regular files only: refuses folders, pipes and devices without blocking.
  static Result<FileReader> open(std::string_view op, const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t length() const { return length_; }
  // Reads the next bytes. A file that was truncated is an error.
  Result<void> read(std::span<std::byte> into);

 private:
  FileReader(std::string_view op, std::string path, FileDescriptor file)
      : op_(op), path_(std::move(path)), file_(std::move(file)) {}
  Result<size_t> readSome(std::span<std::byte> into);

  std::string op_;
  std::string path_;
  FileDescriptor file_;
  uint64_t length_ = 0;
  std::unique_ptr<std::byte[]> buffer_;
  size_t used_ = 0;    // of the buffer
  size_t filled_ = 0;  // of the buffer
};

// A file that has no name until it replaces another, so that a killed process leaves nothing behind. Some systems lack
// unnamed files, and replacing a file always needs a name for a moment. That name is locked while its owner lives. It
// follows from the name of the file to replace, so that the next save of that file finds and removes what killed saves
// have left without listing the folder. On a network file system, the lock must be visible to all machines that save
// there. Without locks, or during more than 16 saves of one file, names are random and nothing removes them.
class TemporaryFile {
 public:
  // Will replace the file of this name in the folder, an open descriptor that outlives this object. Creates no file
  // yet; later calls do not allocate memory.
  TemporaryFile(int folder, std::string target);
  TemporaryFile(TemporaryFile&& other) noexcept
      : folder_(other.folder_),
        target_(std::move(other.target_)),
        name_(std::move(other.name_)),
        file_(std::move(other.file_)),
        isNamed_(std::exchange(other.isNamed_, false)) {}
  ~TemporaryFile();

  // Creates the file, readable only by its owner. Returns 0 or an errno value, as `replaceTarget` does.
  int make();
  int descriptor() const { return file_.get(); }
  // This file is then no longer temporary.
  int replaceTarget();

  static bool isTemporaryName(std::string_view name);
  // For tests: behaves as on a system without unnamed files.
  static void setNamesAlways(bool always);

 private:
  void chooseName(int attempt);
  void removeAbandoned();

  int folder_;
  std::string target_;
  std::string name_;
  FileDescriptor file_;
  bool isNamed_ = false;
};

struct FileLocation;

// A file that replaces another once it is complete. Links are followed as FileLocation says. Only regular files are
// replaced; the new file gets the old one's permissions and group. A file that did not exist is readable only by its
// owner, since a cache contains user data. Nothing changes without `commit`.
class FileReplacement {
 public:
  static Result<FileReplacement> make(std::string_view op, const std::string& path);

  Result<void> write(std::span<const std::byte> bytes);
  // After a crash or power loss, either the old or the new file is there, complete.
  Result<void> commit();

 private:
  FileReplacement(std::string_view op, const std::string& path, FileLocation location);
  Result<void> writeOut(std::span<const std::byte> bytes);
  Result<void> flush();

  std::string op_;
  std::string path_;
  mode_t permissions_ = 0600;
  std::optional<gid_t> group_;  // of the replaced file
  std::vector<std::byte> buffer_;
  FileDescriptor folder_;
  TemporaryFile file_;
};

}  // namespace mnk
