// A new directory that is removed with its contents.
#pragma once
#include <filesystem>
#include <optional>

namespace mnk::host {

class TemporaryDirectory {
 public:
  static std::optional<TemporaryDirectory> make();
  ~TemporaryDirectory();
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Creates missing parent folders.
  bool write(const std::filesystem::path& relative, std::string_view text) const;

 private:
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace mnk::host
