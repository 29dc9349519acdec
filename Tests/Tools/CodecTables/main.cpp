// Computes the tables of the `turbo` codec, and the code guesses of both codecs.
//   make-tables                 prints Shaders/Common/TurboTables.h
//   make-tables --guesses       prints Shaders/KVCacheQuantize/CodeGuesses.h
//   make-tables --search 50000  searches 50000 seeds for better signs, and prints the best
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "Print.hpp"
#include "SignSearch.hpp"

using namespace mnk::tables;

namespace {

int search(uint32_t seeds) {
  for (const auto& [headDim, stored] : kSignSeeds) {
    const SignErrors best = bestSigns(headDim, seeds), now = evaluate(headDim, stored);
    std::printf("%3zu elements: seed %6u, worst %.3f, mean %.3f (stored: seed %6u, worst %.3f, mean %.3f)\n", headDim,
                best.seed, best.worst, best.mean, now.seed, now.worst, now.mean);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count == 1) return std::fputs(turboTables().c_str(), stdout) < 0;
  if (count == 2 && std::string_view(arguments[1]) == "--guesses") return std::fputs(codeGuesses().c_str(), stdout) < 0;
  const long seeds = count == 3 && std::string_view(arguments[1]) == "--search" ? std::atol(arguments[2]) : 0;
  if (seeds > 0 && seeds <= UINT32_MAX) return search(uint32_t(seeds));
  std::fputs("error: usage: make-tables [--guesses | --search SEEDS], with at least 1 seed\n", stderr);
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
