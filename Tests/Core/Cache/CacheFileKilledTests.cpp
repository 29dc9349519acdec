// Saves that are killed at any time: the file is always complete, and the next save removes their temporary files.
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "CacheFileFixture.hpp"
#include "Harness/FakeDevice.hpp"
#include "KilledSave.hpp"
#include "Support/File.hpp"

#if defined(__APPLE__)
#include <TargetConditionals.h>
#include <mach-o/dyld.h>
#else
extern char** environ;
#endif

// iOS apps cannot start processes.
#if !(defined(__APPLE__) && TARGET_OS_IPHONE)

namespace mnk::test {

namespace {

// The executable of these tests, which is next to XCTest's if XCTest runs them. Xcode does not build it.
std::string testProgram() {
#if defined(__APPLE__)
  char path[4096];
  uint32_t length = sizeof path;
  const std::filesystem::path self = _NSGetExecutablePath(path, &length) == 0 ? path : "";
#else
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
#endif
  const std::filesystem::path program = self.parent_path() / "core-tests";
  return std::filesystem::exists(program) ? program.string() : "";
}

ino_t fileNumber(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// Starts a process that saves, waits for its first save, and kills it during one of the next. If temporary files have
// names, waits for one.
void killASave(const std::string& program, const CacheFolder& folder, const std::string& path, bool hasNames,
               uint32_t microseconds) {
  const ino_t before = fileNumber(path);
  std::string name = program, label = "child", option = "--save-until-killed", to = path;
  char* arguments[] = {name.data(), label.data(), option.data(), to.data(), nullptr};
  pid_t child = 0;
#if defined(__APPLE__)
  char** environ = nullptr;
#endif
  const int started = ::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ);
  EXPECT_EQ(started, 0);
  if (started != 0) throw Stop{};
  int status = 0;
  bool isOver = false;
  while (fileNumber(path) == before && !isOver) {
    isOver = ::waitpid(child, &status, WNOHANG) == child;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT(!isOver);  // the process exits only if saving fails
  if (isOver) throw Stop{};
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  for (int i = 0; hasNames && folder.fileCount() < 2 && i < 100000; ++i) std::this_thread::yield();
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
}

void killSaves(const std::string& name, bool hasNames) {
  const std::string program = testProgram();
#if defined(__APPLE__)
  if (program.empty()) return;
#endif
  const CacheFolder folder;
  const int kills = std::getenv("MNK_TEST_FULL") ? 200 : 20;
  const auto device = FakeDevice::make();
  Seeded random;
  bool hasLeft = false;
  for (int i = 0; i < kills; ++i) {
    const Context context(fmt::format("after kill {}", i));
    killASave(program, folder, folder.path(name), hasNames, static_cast<uint32_t>(random.below(4000)));
    hasLeft = hasLeft || folder.fileCount() > 1;
    const AttentionCache loaded = REQUIRE(AttentionCache::load(device, folder.path(name), 1 << 24));
    const uint64_t stored = *loaded.nextPosition(0) * kKilledSaveWidth;
    std::vector<float> keys(2 * kKilledSaveWidth);
    REQUIRE(loaded.view().keys.read(std::as_writable_bytes(std::span(keys))));
    EXPECT_EQ(std::count(keys.begin(), keys.end(), kKilledSaveElement), static_cast<int64_t>(stored));
    EXPECT(folder.fileCount() <= 2);  // the last save has removed files of earlier ones
  }
  if (hasNames) EXPECT(hasLeft);
  REQUIRE(makeCache(device).save(folder.path(name)));
  EXPECT_EQ(folder.fileCount(), 1u);
}

}  // namespace

TEST(CacheFileKilled, LeavesACompleteFileAndNothingElse) {
  killSaves("cache", false);
}
TEST(CacheFileKilled, LeavesACompleteFileWithNamedTemporaryFiles) {
  killSaves("cache.named", true);
}

}  // namespace mnk::test

#endif
