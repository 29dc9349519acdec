#include <algorithm>
#include <cmath>
#include <limits>

#include "MultiRoPENumbers.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

namespace {

using Spec = MultiRoPESpec;

template <typename Real>
Real badReal(Seeded& random) {
  using Limits = std::numeric_limits<Real>;
  return oneOf<Real>(random, {0, Real(-0.0), -1, Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(),
                              Limits::denorm_min(), Limits::min(), Limits::max(), Limits::lowest(), Limits::epsilon(),
                              1 + Limits::epsilon(), 65536, 65537, 1 << 20});
}

uint64_t pairsOf(const Spec& spec) {
  const auto places = spec.queries.tensor ? placesOf(spec.queries) : std::nullopt;
  const mnk_rotary_embedding& rotary = spec.numbers.rotary;
  return (rotary.has_rope_dim || !places ? rotary.rope_dim : places->head_dim) / 2;
}

void spoilFactors(Spec& spec, Seeded& random) {
  std::vector<float>& factors = spec.factors;
  if (factors.empty()) factors.resize(std::clamp<uint64_t>(pairsOf(spec), 1, 512), 1);
  spec.hasFactors = true;
  switch (random.below(5)) {
    case 0:
      factors.push_back(1);
      return;
    case 1:
      factors.pop_back();
      return;
    case 2:
      spec.hasFactors = false;
      return;
    case 3:  // more than is there: it must be refused before it is read
      spec.factorCount = std::max<uint64_t>(513, edge(random, {513, 1024}));
      return;
    default:
      factors[random.below(factors.size())] = badReal<float>(random);
  }
}

void spoilYaRN(Spec& spec, Seeded& random) {
  mnk_rotary_embedding& rotary = spec.numbers.rotary;
  if (!rotary.has_yarn) rotary.yarn = {4096, 1, 1, 32, 1, false};
  rotary.has_yarn = true;
  mnk_yarn& yarn = rotary.yarn;
  switch (random.below(6)) {
    case 0:
      yarn.original_context = edge(random, {1});
      return;
    case 1:  // where the magnitude has no size: at e^10 and beyond
      rotary.scale = oneOf<double>(random, {22026, 22027, 30000, 1e9});
      return;
    case 2:
      rotary.base = oneOf<double>(random, {1, 0.5, std::nextafter(1.0, 2.0), 1e300});
      return;
    default:
      *oneOf(random, {&yarn.extension_factor, &yarn.attention_factor, &yarn.beta_fast, &yarn.beta_slow}) =
          badReal<float>(random);
  }
}

void spoilSections(Spec& spec, Seeded& random) {
  mnk_rotary_embedding& rotary = spec.numbers.rotary;
  uint32_t& section = rotary.sections[random.below(4)];
  switch (random.below(4)) {
    case 0:
      std::fill(std::begin(rotary.sections), std::end(rotary.sections), 0);
      return;
    case 1:
      section += 1;
      return;
    case 2:
      section = static_cast<uint32_t>(edge(random, {UINT32_MAX, pairsOf(spec), section}));
      return;
    default:  // axes that positions may lack
      rotary.layout = oneOf(random, {MNK_MROPE, MNK_IMROPE});
      for (uint32_t& one : rotary.sections) one = static_cast<uint32_t>(random.below(3));
  }
}

void spoilTheRopeDim(Spec& spec, Seeded& random) {
  mnk_rotary_embedding& rotary = spec.numbers.rotary;
  const uint64_t all = 2 * pairsOf(spec);
  rotary.has_rope_dim = coin(random, 7, 8);
  rotary.rope_dim = coin(random, 1, 2) ? edge(random, {all, all, 1024}) : random.below(2 * all + 1);
}

}  // namespace

void mutateRotary(Spec& spec, Seeded& random) {
  switch (random.below(7)) {
    case 0:
      spec.numbers.rotary.base = badReal<double>(random);
      return;
    case 1:
      spec.numbers.rotary.scale = badReal<double>(random);
      return;
    case 2:
      return spoilFactors(spec, random);
    case 3:
    case 4:
      return spoilYaRN(spec, random);
    case 5:
      return spoilSections(spec, random);
    default:
      spoilTheRopeDim(spec, random);
  }
}

}  // namespace mnk::fuzz
