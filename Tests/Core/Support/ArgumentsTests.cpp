// Programs refuse arguments that their table of options does not describe.
#include "Harness/Arguments.hpp"

#include "Harness/Check.hpp"

using namespace mnk::arguments;

namespace {

struct Read {
  bool isFull = false;
  std::string file;
  std::optional<uint64_t> seed;
  std::optional<bool> isMetal;
  std::vector<uint32_t> lengths;
  std::string wrong;
};

Read readWords(std::vector<std::string> words) {
  Read into;
  const Option options[] = {{"--full", "", "", constant(into.isFull, true)},
                            {"--file", "FILE", "", text(into.file)},
                            {"--seed", "N", "", number(into.seed, 1, 9)},
                            {"--device", "KIND", "", choice(into.isMetal, {{"host", false}, {"metal", true}})},
                            {"--lengths", "LIST", "", list(into.lengths, [](uint32_t& one) { return number(one); })}};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  into.wrong = readOptions(options, arguments);
  return into;
}

}  // namespace

TEST(Arguments, AreStored) {
  const Read all = readWords({"--full", "--file", "--seed", "--seed", "9", "--device", "metal", "--lengths", "1,20"});
  EXPECT_EQ(all.wrong, "");
  EXPECT(all.isFull);
  EXPECT_EQ(all.file, "--seed");
  EXPECT(all.seed == 9u);
  EXPECT(all.isMetal == true);
  EXPECT(all.lengths == std::vector<uint32_t>({1, 20}));
}

TEST(Arguments, AreRefusedUnlessTheTableDescribesThem) {
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{"--other"}, "there is no option --other"},
      {{"--full", "1"}, "there is no option 1"},
      {{"--seed"}, "--seed needs a value: N"},
      {{"--seed", "10"}, "--seed takes a number from 1 to 9, not \"10\""},
      {{"--seed", "0"}, "--seed takes a number from 1 to 9, not \"0\""},
      {{"--seed", "5x"}, "--seed takes a number from 1 to 9, not \"5x\""},
      {{"--device", "cpu"}, "--device takes one of host, metal, not \"cpu\""},
      {{"--lengths", "1,,2"},
       "--lengths takes a number from 0 to 4294967295, with commas between several, not \"1,,2\""},
  };
  for (const auto& [words, expected] : wrong) EXPECT_EQ(readWords(words).wrong, expected);
}
