#include "Arguments.hpp"

#include <charconv>
#include <optional>
#include <string_view>

namespace mnk::bench::decode {

namespace {

Error wrong(std::string what, std::string_view got, std::string expected) {
  return {.op = "decode-bench",
          .what = std::move(what),
          .got = std::string(got),
          .expected = std::move(expected),
          .fix = "See --help."};
}

std::vector<std::string_view> parts(std::string_view list) {
  std::vector<std::string_view> found;
  while (true) {
    const size_t comma = list.find(',');
    found.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return found;
    list.remove_prefix(comma + 1);
  }
}

Result<std::vector<uint64_t>> numbers(std::string_view option, std::string_view list) {
  std::vector<uint64_t> found;
  for (const std::string_view part : parts(list)) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size() || number == 0 || number > 1u << 24) {
      return wrong(std::string(option) + " takes numbers", part, "numbers from 1 to 16777216, with commas between");
    }
    found.push_back(number);
  }
  return found;
}

Result<std::vector<Storage>> storages(std::string_view list) {
  std::vector<Storage> found;
  for (const std::string_view part : parts(list)) {
    const auto storage = Storage::named(part);
    if (!storage) return wrong("--storage takes names", part, "f16, turbo2 to turbo8 or mlx1-4, with commas between");
    found.push_back(*storage);
  }
  return found;
}

std::optional<FlashDecodeKernel> kernelNamed(std::string_view name) {
  if (name == "automatic") return FlashDecodeKernel::automatic;
  if (name == "vector") return FlashDecodeKernel::vector;
  if (name == "matrix") return FlashDecodeKernel::matrix;
  return {};
}

// The lists as values; empty ones get defaults at the end.
struct Lists {
  Axes axes;
  bool isFull = false;

  std::vector<DecodeCase> cases() const {
    const bool isNarrowed = !axes.storages.empty() || !axes.groups.empty() || !axes.headDims.empty() ||
                            !axes.lengths.empty() || axes.latentDim != 0;
    if (!isFull && !isNarrowed) return shortList(axes.kvHeads, axes.rows);
    const DecodeCase usual;
    Axes filled = isFull ? Axes::everything()
                         : Axes{{Storage::f16(), Storage::turbo(4)}, {usual.group}, {usual.headDim}, {usual.length}};
    filled.kvHeads = axes.kvHeads;
    filled.rows = axes.rows;
    filled.latentDim = axes.latentDim;
    if (!axes.storages.empty()) filled.storages = axes.storages;
    if (!axes.groups.empty()) filled.groups = axes.groups;
    if (!axes.headDims.empty()) filled.headDims = axes.headDims;
    if (!axes.lengths.empty()) filled.lengths = axes.lengths;
    return filled.cases();
  }
};

// Options with a value.
Result<void> set(Arguments& arguments, Lists& lists, std::string_view option, std::string_view value) {
  if (option == "--device") {
    arguments.device = value;
  } else if (option == "--json") {
    arguments.jsonFile = value;
  } else if (option == "--shaders") {
    arguments.shaders = value;
  } else if (option == "--kernel") {
    const auto kernel = kernelNamed(value);
    if (!kernel) return wrong("--kernel takes a name", value, "automatic, vector or matrix");
    arguments.options.kernel = *kernel;
  } else if (option == "--storage") {
    auto named = storages(value);
    if (!named) return std::move(named).error();
    lists.axes.storages = *named;
  } else {
    auto values = numbers(option, value);
    if (!values) return std::move(values).error();
    if (option == "--lengths") lists.axes.lengths = *values;
    if (option == "--groups") lists.axes.groups = *values;
    if (option == "--dims") lists.axes.headDims = *values;
    if (option == "--latent") lists.axes.latentDim = values->front();
    if (option == "--kv-heads") lists.axes.kvHeads = values->front();
    if (option == "--rows") lists.axes.rows = values->front();
    if (option == "--splits") arguments.options.splits = static_cast<uint32_t>(values->front());
  }
  return {};
}

constexpr std::string_view kWithValue[] = {"--device", "--json", "--shaders",  "--kernel", "--storage", "--lengths",
                                           "--groups", "--dims", "--kv-heads", "--rows",   "--splits",  "--latent"};

bool takesValue(std::string_view option) {
  for (const std::string_view each : kWithValue) {
    if (each == option) return true;
  }
  return false;
}

}  // namespace

const char* Arguments::help() {
  return "decode-bench measures FlashDecode on the devices here\n"
         "  --device KIND     host or metal alone\n"
         "  --json FILE       writes the results there too\n"
         "  --full            every length, group, head dim and storage; lists narrow it\n"
         "  --lengths LIST    positions of the sequence, such as 256,4096,65536\n"
         "  --groups LIST     query heads for each head of the cache\n"
         "  --dims LIST       head dims\n"
         "  --latent N        elements of values that are the first part of keys too; --dims is the rest\n"
         "  --storage LIST    f16, turbo2 to turbo8, mlx1-4\n"
         "  --kv-heads N      heads of the cache (8)\n"
         "  --rows N          rows of queries (1)\n"
         "  --kernel NAME     vector or matrix, where the device shall not choose; the Host device has no matrix "
         "kernel\n"
         "  --splits N        parts of the keys, where the device shall not choose\n"
         "  --cold            turns between copies of the cache, more than processors keep close\n"
         "  --tune            measures what the device could choose, and what that gains over the table\n"
         "  --shaders DIR     whose text is counted (Shaders)\n";
}

Result<Arguments> Arguments::parse(int argc, char* const* argv) {
  Arguments arguments;
  Lists lists;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (takesValue(option)) {
      if (i + 1 == argc) return wrong("an option lacks its value", option, std::string(option) + " VALUE");
      if (auto done = set(arguments, lists, option, argv[++i]); !done) return std::move(done).error();
    } else if (option == "--full") {
      lists.isFull = true;
    } else if (option == "--cold") {
      arguments.isCold = true;
    } else if (option == "--tune") {
      arguments.isTuning = true;
    } else if (option == "--help" || option == "-h") {
      arguments.wantsHelp = true;
    } else {
      return wrong("there is no such option", option, "one that --help lists");
    }
  }
  arguments.cases = lists.cases();
  return arguments;
}

}  // namespace mnk::bench::decode
