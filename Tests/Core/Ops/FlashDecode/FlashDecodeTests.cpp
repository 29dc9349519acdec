// FlashDecode on every device against attention in double: head dims, dtypes, rows, and where keys lie.
#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"

namespace mnk::test {

TEST(FlashDecode, AttendsInEveryHeadDimAndDType) {
  runOnEveryDevice(headDimCases());
}

TEST(FlashDecode, AttendsInHeadDimsThatFitInLongerOnes) {
  runOnEveryDevice(paddedDimCases());
}

TEST(FlashDecode, AttendsForRowsAndGroupsOfEverySize) {
  runOnEveryDevice(groupCases());
}

TEST(FlashDecode, AttendsToSequencesOfTheirOwnLengths) {
  runOnEveryDevice(sequenceCases());
}

TEST(FlashDecode, ReadsQueriesWhereverTheyLie) {
  runOnEveryDevice(queryCases());
}

TEST(FlashDecode, AttendsFromAndToAnyAddress) {
  runOnEveryDevice(unalignedCases());
}

}  // namespace mnk::test
