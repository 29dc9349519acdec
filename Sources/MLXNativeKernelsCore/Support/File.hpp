// A sequential file reader, and what readers and writers share. FileReplacement.hpp has the writer. Errors name the
// path and the system's error.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

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

// The buffer size. Larger spans bypass the buffer.
inline constexpr size_t kFileBufferBytes = 1 << 18;

// `number` is an errno value.
Error fileError(std::string_view op, std::string_view what, const std::string& path, int number, std::string_view fix);
Error notPlainFile(std::string_view op, const std::string& path);
Error cannotMakeFile(std::string_view op, const std::string& path, int number);
// Refuses an empty path, and one with a null character, where the system would end it.
Result<void> checkPath(std::string_view op, const std::string& path);

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

}  // namespace mnk
