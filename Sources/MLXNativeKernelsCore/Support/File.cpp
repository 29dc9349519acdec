#include "Support/File.hpp"
#include "Support/Try.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "Support/Format.hpp"

namespace mnk {

Error fileError(std::string_view op, std::string_view what, const std::string& path, int number, std::string_view fix) {
  return {.op = std::string(op),
          .what = std::string(what),
          .got = fmt::format("\"{}\": {}", path, std::generic_category().message(number)),
          .expected = "a file that can be read or written there",
          .fix = std::string(fix)};
}

Error notPlainFile(std::string_view op, const std::string& path) {
  return {.op = std::string(op),
          .what = "the path does not lead to a plain file",
          .got = fmt::format("\"{}\"", path),
          .expected = "a plain file",
          .fix = "Pass the path of a file, not of a folder, a pipe or a device."};
}

Error cannotMakeFile(std::string_view op, const std::string& path, int number) {
  return fileError(op, "no file can be made beside the path", path, number,
                   "Pass a path in a folder that exists and that this process may write to.");
}

Result<void> checkPath(std::string_view op, const std::string& path) {
  if (!path.empty() && path.find('\0') == std::string::npos) return {};
  return Error{.op = std::string(op),
               .what = "the path names no file",
               .got = path.empty() ? "an empty path" : "a path with a zero in it",
               .expected = "the name of a file",
               .fix = "Pass the path of a file."};
}

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

Result<FileReader> FileReader::open(std::string_view op, const std::string& path) {
  MNK_TRY(checkPath(op, path));
  FileReader reader(op, path, FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
  if (reader.file_.get() < 0) {
    const bool isMissing = errno == ENOENT;
    return fileError(op, isMissing ? "there is no such file" : "the file cannot be opened", path, errno,
                     "Pass the path of a file that this process may read.");
  }
  struct stat status {};
  if (::fstat(reader.file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) return notPlainFile(op, path);
  reader.length_ = static_cast<uint64_t>(status.st_size);
  reader.buffer_.reset(new std::byte[kFileBufferBytes]);
  return reader;
}

Result<size_t> FileReader::readSome(std::span<std::byte> into) {
  ssize_t got;
  do got = ::read(file_.get(), into.data(), into.size());
  while (got < 0 && errno == EINTR);
  if (got < 0) return fileError(op_, "the file cannot be read", path_, errno, "Check the disk, and read it again.");
  if (got == 0) {
    return Error{.op = op_,
                 .what = "the file became shorter while it was read",
                 .got = fmt::format("\"{}\"", path_),
                 .expected = bytesText(length_),
                 .fix = "Make sure that no other process writes to the file."};
  }
  return static_cast<size_t>(got);
}

Result<void> FileReader::read(std::span<std::byte> into) {
  while (!into.empty()) {
    if (used_ == filled_) {
      const bool isDirect = into.size() >= kFileBufferBytes;
      MNK_TRY(auto got, readSome(isDirect ? into : std::span(buffer_.get(), kFileBufferBytes)));
      if (isDirect) {
        into = into.subspan(got);
        continue;
      }
      used_ = 0;
      filled_ = got;
    }
    const size_t count = std::min(into.size(), filled_ - used_);
    std::memcpy(into.data(), buffer_.get() + used_, count);
    used_ += count;
    into = into.subspan(count);
  }
  return {};
}

}  // namespace mnk
