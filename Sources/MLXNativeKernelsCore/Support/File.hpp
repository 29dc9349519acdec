// Files in a few words: one that is read from its start, and one that takes the place of another once it is complete.
// Both are buffered. Errors name the path and what the system says.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "MLXNativeKernels/Result.hpp"

namespace mnk {

// Closes what it holds.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor();

  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

class FileReader {
 public:
  // Plain files alone: folders, pipes and devices are refused and not waited for.
  static Result<FileReader> open(std::string_view op, const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t length() const { return length_; }
  // The next bytes. A file that has become shorter is an error.
  Result<void> read(std::span<std::byte> into);

 private:
  FileReader(std::string_view op, std::string path, FileDescriptor file)
      : op_(op), path_(std::move(path)), file_(std::move(file)) {}

  std::string op_;
  std::string path_;
  FileDescriptor file_;
  uint64_t length_ = 0;
  std::vector<std::byte> buffer_;
  size_t used_ = 0;  // of the buffer
};

// Written beside the path under another name, for its owner alone to read. Without `commit` it is removed again.
class FileReplacement {
 public:
  static Result<FileReplacement> make(std::string_view op, const std::string& path);
  FileReplacement(FileReplacement&& other) noexcept
      : op_(std::move(other.op_)),
        path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        file_(std::move(other.file_)),
        buffer_(std::move(other.buffer_)) {}
  ~FileReplacement();

  Result<void> write(std::span<const std::byte> bytes);
  // Takes the place of whatever lies at the path. Even if the machine stops, one of the two is there and whole.
  Result<void> commit();

 private:
  FileReplacement(std::string_view op, std::string path, std::string temporary, FileDescriptor file)
      : op_(op), path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}
  Result<void> flush();

  std::string op_;
  std::string path_;
  std::string temporary_;
  FileDescriptor file_;
  std::vector<std::byte> buffer_;
};

}  // namespace mnk
