#include "EmbeddedLibrary.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "Devices/Metal/EmbeddedShaders.hpp"
#include "Support/Errors.hpp"

namespace mnk::metal {

namespace {

// Reports a slow compilation on stderr while it runs.
class SlowNotice {
 public:
  explicit SlowNotice(std::string text) : text_(std::move(text)) {
    const char* wanted = std::getenv("MNK_METAL_MESSAGES");
    if (wanted && std::string_view(wanted) == "0") return;
    try {
      thread_ = std::thread([this] { wait(); });
    } catch (const std::system_error&) {  // the notice is optional
    }
  }
  ~SlowNotice() {
    {
      std::lock_guard lock(mutex_);
      isOver_ = true;
    }
    over_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    if (!over_.wait_for(lock, std::chrono::seconds(1), [&] { return isOver_; })) std::fputs(text_.c_str(), stderr);
  }

  std::string text_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool isOver_ = false;
  std::thread thread_;
};

class EmbeddedLibrary final : public MetalLibrary {
 public:
  EmbeddedLibrary(MTL::Device* device, std::string label, std::string tried, std::string instead)
      : MetalLibrary(std::move(label), {LibraryOrigin::Kind::embeddedText, std::move(instead)}),
        device_(retained(device)),
        tried_(std::move(tried)),
        parts_(embeddedFiles().size()) {}
  ~EmbeddedLibrary() override {
    const AutoreleasePool pool;
    parts_.clear();
    device_.reset();
  }

  std::vector<std::string> functionNames() const override {
    std::vector<std::string> all;
    for (const EmbeddedFile& file : embeddedFiles()) {
      for (std::string& name : file.functionNames()) {
        if (hasFences_ || name != kFencesFunction) all.push_back(std::move(name));
      }
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  MTL::Device* device() const override { return device_.get(); }

  // Device-wide fences need Metal 3.2. If the system lacks it, or refuses the kernel with such a fence, kernels run
  // without.
  Result<void> chooseLanguage() {
    if (__builtin_available(macOS 15, iOS 18, tvOS 18, visionOS 2, *)) {
      if (nativeWith(kFencesFunction)) return {};
    }
    hasFences_ = false;
    MNK_TRY(nativeWith(shaderStamp()));
    return {};
  }

  Result<MTL::Library*> nativeWith(std::string_view function) override {
    const auto files = embeddedFiles();
    const auto file =
        std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& each) { return each.has(function); });
    Part& part = parts_[static_cast<size_t>(file - files.begin())];
    std::lock_guard lock(part.mutex);
    if (!part.compiled) {
      MNK_TRY(auto compiled, compile(*file));
      part.compiled = std::move(compiled);
    }
    return part.compiled->native();
  }

 private:
  struct Part {
    std::mutex mutex;  // held during compilation
    std::shared_ptr<NativeLibrary> compiled;
  };

  Result<std::shared_ptr<NativeLibrary>> compile(const EmbeddedFile& file) const {
    const SlowNotice notice(fmt::format(
        "MLXNativeKernels: {} is being compiled, because {}. `prepare` does so ahead; MNK_METAL_MESSAGES=0 turns this "
        "message off.\n",
        file.path,
        origin().path.empty() ? "this program uses no compiled kernels (default.metallib)"
                              : origin().path + " was compiled with fast math"));
    constexpr auto kVersion3_2 = static_cast<MTL::LanguageVersion>((3 << 16) | 2);  // old headers have no name for it
    auto compiled = compileText(device_.get(), file.text(), std::string(label()), origin(),
                                hasFences_ ? kVersion3_2 : MTL::LanguageVersion3_1);
    if (compiled) return compiled;
    Error error = std::move(compiled).error();
    error.code = ErrorCode::libraryNotFound;
    error.what = "the kernels of this package were not found, and their embedded text does not compile";
    error.got += "; tried:" + tried_;
    error.fix = "Build with Xcode, which makes default.metallib, or name the file when the device is made.";
    return error;
  }

  Owned<MTL::Device> device_;
  std::string tried_;
  bool hasFences_ = true;
  std::vector<Part> parts_;  // one for each file
};

}  // namespace

Result<std::shared_ptr<MetalLibrary>> makeEmbeddedLibrary(MTL::Device* device, std::string label, std::string tried,
                                                          std::string instead) {
  auto library = std::make_shared<EmbeddedLibrary>(device, std::move(label), std::move(tried), std::move(instead));
  MNK_TRY(library->chooseLanguage());
  return std::shared_ptr<MetalLibrary>(std::move(library));
}

}  // namespace mnk::metal
