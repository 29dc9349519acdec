#include "Ops/Common/KVCodecTables.hpp"

#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <span>

#include "Harness/SoftFloat.hpp"
#include "Ops/Common/TurboSigns.hpp"

namespace mnk::test {

namespace {

// Positive halves: level k lies between boundaries k and k + 1, of which the first is 0 and the last is not there.
// clang-format off
constexpr float kMlx1Levels4[] = {
    0.1283950f, 0.3880483f, 0.6567591f, 0.9423405f, 1.2562312f, 1.6180464f, 2.0690172f, 2.7325896f,
};
constexpr float kMlx1Boundaries4[] = {
    0.2582217f, 0.5224037f, 0.7995498f, 1.0992859f, 1.4371388f, 1.8435318f, 2.4008034f,
};
constexpr float kMlx1Levels5[] = {
    0.0658849f, 0.1980377f, 0.3313550f, 0.4666676f, 0.6048936f, 0.7470884f, 0.8945114f, 1.0487242f, 1.2117410f, 1.3862739f,
    1.5761599f, 1.7871646f, 2.0286608f, 2.3176743f, 2.6910589f, 3.2606790f,
};
constexpr float kMlx1Boundaries5[] = {
    0.1319613f, 0.2646964f, 0.3990113f, 0.5357806f, 0.6759910f, 0.8207999f, 0.9716178f, 1.1302326f, 1.2990074f, 1.4812169f,
    1.6816622f, 1.9079127f, 2.1731675f, 2.5043666f, 2.9758689f,
};
constexpr float kMlx1Levels6[] = {
    0.0311537f, 0.0935225f, 0.1560761f, 0.2189392f, 0.2822386f, 0.3461048f, 0.4106724f, 0.4760822f, 0.5424819f, 0.6100285f,
    0.6788902f, 0.7492492f, 0.8213046f, 0.8952766f, 0.9714118f, 1.0499889f, 1.1313277f, 1.2157998f, 1.3038428f, 1.3959804f,
    1.4928497f, 1.5952401f, 1.7041502f, 1.8208742f, 1.9471373f, 2.0853192f, 2.2388464f, 2.4129324f, 2.6161277f, 2.8640626f,
    3.1907215f, 3.6996161f,
};
constexpr float kMlx1Boundaries6[] = {
    0.0623381f, 0.1247993f, 0.1875076f, 0.2505889f, 0.3141717f, 0.3783886f, 0.4433773f, 0.5092820f, 0.5762552f, 0.6444593f,
    0.7140697f, 0.7852769f, 0.8582906f, 0.9333442f, 1.0107003f, 1.0906583f, 1.1735638f, 1.2598213f, 1.3499116f, 1.4444151f,
    1.5440449f, 1.6496952f, 1.7625122f, 1.8840057f, 2.0162282f, 2.1620828f, 2.3258894f, 2.5145300f, 2.7400952f, 3.0273920f,
    3.4451688f,
};
constexpr float kMlx1Levels8[] = {
    0.0135717f, 0.0407151f, 0.0678584f, 0.0950019f, 0.1221453f, 0.1492888f, 0.1764324f, 0.2035761f, 0.2307198f, 0.2578636f,
    0.2850076f, 0.3121517f, 0.3392960f, 0.3664405f, 0.3935852f, 0.4207301f, 0.4478753f, 0.4750208f, 0.5021667f, 0.5293129f,
    0.5564596f, 0.5836067f, 0.6107544f, 0.6379027f, 0.6650517f, 0.6922014f, 0.7193520f, 0.7465035f, 0.7736561f, 0.8008098f,
    0.8279648f, 0.8551212f, 0.8822793f, 0.9094390f, 0.9366008f, 0.9637647f, 0.9909310f, 1.0180999f, 1.0452718f, 1.0724469f,
    1.0996255f, 1.1268081f, 1.1539951f, 1.1811868f, 1.2083838f, 1.2355865f, 1.2627956f, 1.2900118f, 1.3172356f, 1.3444678f,
    1.3717093f, 1.3989610f, 1.4262237f, 1.4534986f, 1.4807869f, 1.5080897f, 1.5354084f, 1.5627445f, 1.5900996f, 1.6174755f,
    1.6448739f, 1.6722970f, 1.6997469f, 1.7272261f, 1.7547372f, 1.7822828f, 1.8098662f, 1.8374904f, 1.8651592f, 1.8928763f,
    1.9206458f, 1.9484722f, 1.9763603f, 2.0043154f, 2.0323430f, 2.0604493f, 2.0886408f, 2.1169245f, 2.1453081f, 2.1737998f,
    2.2024086f, 2.2311440f, 2.2600165f, 2.2890372f, 2.3182184f, 2.3475732f, 2.3771157f, 2.4068614f, 2.4368270f, 2.4670306f,
    2.4974918f, 2.5282321f, 2.5592748f, 2.5906452f, 2.6223710f, 2.6544825f, 2.6870129f, 2.7199985f, 2.7534795f, 2.7874999f,
    2.8221086f, 2.8573596f, 2.8933131f, 2.9300362f, 2.9676040f, 3.0061011f, 3.0456229f, 3.0862780f, 3.1281899f, 3.1715011f,
    3.2163758f, 3.2630056f, 3.3116156f, 3.3624729f, 3.4158977f, 3.4722785f, 3.5320936f, 3.5959415f, 3.6645851f, 3.7390194f,
    3.8205780f, 3.9111092f, 4.0132856f, 4.1311907f, 4.2715508f, 4.4467193f, 4.6836997f, 5.0652659f,
};
constexpr float kMlx1Boundaries8[] = {
    0.0271434f, 0.0542868f, 0.0814302f, 0.1085736f, 0.1357171f, 0.1628606f, 0.1900042f, 0.2171479f, 0.2442917f, 0.2714356f,
    0.2985797f, 0.3257239f, 0.3528683f, 0.3800128f, 0.4071577f, 0.4343027f, 0.4614481f, 0.4885937f, 0.5157398f, 0.5428862f,
    0.5700331f, 0.5971806f, 0.6243286f, 0.6514772f, 0.6786266f, 0.7057767f, 0.7329278f, 0.7600798f, 0.7872329f, 0.8143873f,
    0.8415430f, 0.8687003f, 0.8958592f, 0.9230199f, 0.9501827f, 0.9773478f, 1.0045155f, 1.0316859f, 1.0588593f, 1.0860362f,
    1.1132168f, 1.1404016f, 1.1675909f, 1.1947853f, 1.2219851f, 1.2491911f, 1.2764037f, 1.3036237f, 1.3308517f, 1.3580886f,
    1.3853351f, 1.4125923f, 1.4398612f, 1.4671427f, 1.4944383f, 1.5217490f, 1.5490764f, 1.5764221f, 1.6037875f, 1.6311747f,
    1.6585855f, 1.6860220f, 1.7134865f, 1.7409817f, 1.7685100f, 1.7960745f, 1.8236783f, 1.8513248f, 1.8790177f, 1.9067610f,
    1.9345590f, 1.9624162f, 1.9903379f, 2.0183292f, 2.0463962f, 2.0745450f, 2.1027826f, 2.1311163f, 2.1595539f, 2.1881042f,
    2.2167763f, 2.2455802f, 2.2745269f, 2.3036278f, 2.3328958f, 2.3623444f, 2.3919885f, 2.4218442f, 2.4519288f, 2.4822612f,
    2.5128620f, 2.5437535f, 2.5749600f, 2.6065081f, 2.6384267f, 2.6707477f, 2.7035057f, 2.7367390f, 2.7704897f, 2.8048042f,
    2.8397341f, 2.8753363f, 2.9116746f, 2.9488201f, 2.9868525f, 3.0258620f, 3.0659504f, 3.1072339f, 3.1498455f, 3.1939384f,
    3.2396907f, 3.2873106f, 3.3370443f, 3.3891853f, 3.4440881f, 3.5021860f, 3.5640175f, 3.6302633f, 3.7018022f, 3.7797987f,
    3.8658436f, 3.9621974f, 4.0722382f, 4.2013707f, 4.3591350f, 4.5652095f, 4.8744828f,
};
// clang-format on

CodecTable mirrored(std::span<const float> levels, std::span<const float> boundaries) {
  CodecTable table;
  for (size_t k = levels.size(); k-- > 0;) table.levels.push_back(-levels[k]);
  for (float level : levels) table.levels.push_back(level);
  for (size_t k = boundaries.size(); k-- > 0;) table.boundaries.push_back(-boundaries[k]);
  table.boundaries.push_back(0);
  for (float boundary : boundaries) table.boundaries.push_back(boundary);
  return table;
}

using Real = long double;

// A cell of the standard normal distribution: its mean, and how the mean follows the cell's ends.
struct Cell {
  Real mean = 0, byLow = 0, byHigh = 0;
};

Cell cellOf(Real low, Real high, bool isLast) {
  const auto density = [](Real x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>); };
  const auto above = [](Real x) { return std::erfc(x / std::numbers::sqrt2_v<Real>) / 2; };
  const Real mass = isLast ? above(low) : above(low) - above(high);
  // The difference of two densities, without what a subtraction of like numbers loses.
  const Real moment = isLast ? density(low) : -density(low) * std::expm1((low - high) * (low + high) / 2);
  const Real mean = moment / mass;
  return {mean, density(low) * (mean - low) / mass, isLast ? 0 : density(high) * (high - mean) / mass};
}

// One step of Newton's method for "every level is the mean of its cell", whose matrix has three diagonals.
void improve(std::vector<Real>& levels) {
  const size_t count = levels.size();
  std::vector<Real> slope(count), rest(count);  // of the elimination
  for (size_t k = 0; k < count; ++k) {
    const bool isLast = k + 1 == count;
    const Real low = k == 0 ? 0 : (levels[k - 1] + levels[k]) / 2;
    const Real high = isLast ? 0 : (levels[k] + levels[k + 1]) / 2;
    const Cell cell = cellOf(low, high, isLast);
    const Real before = k == 0 ? 0 : -cell.byLow / 2;
    const Real after = -cell.byHigh / 2;
    const Real own = 1 - (k == 0 ? 0 : cell.byLow / 2) - cell.byHigh / 2 - (k == 0 ? 0 : before * slope[k - 1]);
    slope[k] = after / own;
    rest[k] = (levels[k] - cell.mean - (k == 0 ? 0 : before * rest[k - 1])) / own;
  }
  Real step = 0;
  for (size_t k = count; k-- > 0;) {
    step = rest[k] - slope[k] * step;
    levels[k] -= step;
  }
}

// Where the normal distribution of variance 3 has this much to the left: levels lie nearly so.
Real startingLevel(Real part) {
  Real low = 0, high = 20;
  for (int halving = 0; halving < 60; ++halving) {
    const Real middle = (low + high) / 2;
    (std::erf(middle / std::sqrt(Real{6})) < 2 * part - 1 ? low : high) = middle;
  }
  return low;
}

// The levels of 3 and 5 to 8 bits: factor * t * ((t * t + a)^2 + b), but for the factor in halves.
struct Curve {
  double a, b, factor;
};
const std::map<uint32_t, Curve> kCurves = {{3, {0.341796875, 4.26953125, 0.447509765625}},
                                           {5, {-0.07745361328125, 1.4521484375, 1.515380859375}},
                                           {6, {-0.1256103515625, 1.1279296875, 2.00927734375}},
                                           {7, {-0.1497802734375, 0.943359375, 2.45849609375}},
                                           {8, {-0.1627197265625, 0.8193359375, 2.88134765625}}};

std::vector<float> curveLevels(const Curve& curve, size_t count) {
  const auto nearestHalf = [](double x) { return valueOf(DType::f16, nearestBits(DType::f16, x)); };
  std::vector<float> levels;
  for (size_t k = 0; k < count; ++k) {
    const double t = (static_cast<double>(k) + 0.5) / static_cast<double>(count);
    const double u = nearestHalf(t * t + curve.a);
    const double v = nearestHalf(u * u + curve.b);
    levels.push_back(static_cast<float>(curve.factor * nearestHalf(v * t)));
  }
  return levels;
}

std::vector<float> bestLevels(size_t count) {
  std::vector<Real> exact;
  for (size_t k = 0; k < count; ++k) {
    exact.push_back(startingLevel(Real{0.5} + (static_cast<Real>(k) + Real{0.5}) / static_cast<Real>(2 * count)));
  }
  for (int step = 0; step < 40; ++step) improve(exact);
  return {exact.begin(), exact.end()};
}

CodecTable turboTable(uint32_t bits) {
  const size_t count = size_t{1} << (bits - 1);
  const auto curve = kCurves.find(bits);
  const std::vector<float> levels = curve == kCurves.end() ? bestLevels(count) : curveLevels(curve->second, count);
  std::vector<float> boundaries;
  for (size_t k = 0; k + 1 < count; ++k) {
    boundaries.push_back(static_cast<float>((static_cast<double>(levels[k]) + static_cast<double>(levels[k + 1])) / 2));
  }
  return mirrored(levels, boundaries);
}

// Bit j & 7 of byte j >> 3 set: element j changes its sign.
constexpr uint8_t kMlx1Signs[64] = {
    0xa7, 0x3b, 0x91, 0xf4, 0x6d, 0xc2, 0x58, 0x0e, 0xb3, 0x7f, 0x24, 0xd6, 0x89, 0x45, 0xea, 0x1c,
    0x63, 0xaf, 0xd8, 0x52, 0x97, 0x0b, 0xe1, 0x3d, 0x76, 0xc4, 0x19, 0xfe, 0x4a, 0x85, 0x2c, 0xdb,
    0xd3, 0x4e, 0xa8, 0x17, 0x9c, 0x5b, 0xe6, 0x31, 0x72, 0xb9, 0x0d, 0xf5, 0x43, 0x8a, 0x6e, 0xc7,
    0x58, 0x2f, 0x94, 0xe1, 0xb6, 0x3d, 0x0a, 0x7c, 0xc5, 0x61, 0xd8, 0x4f, 0xa3, 0x97, 0x1e, 0x85,
};

}  // namespace

const CodecTable& tableOf(const KVCodec& codec) {
  static const auto* tables = [] {
    auto* all = new std::map<std::pair<KVCodec::Name, uint32_t>, CodecTable>;
    (*all)[{KVCodec::Name::mlx1, 4}] = mirrored(kMlx1Levels4, kMlx1Boundaries4);
    (*all)[{KVCodec::Name::mlx1, 5}] = mirrored(kMlx1Levels5, kMlx1Boundaries5);
    (*all)[{KVCodec::Name::mlx1, 6}] = mirrored(kMlx1Levels6, kMlx1Boundaries6);
    (*all)[{KVCodec::Name::mlx1, 8}] = mirrored(kMlx1Levels8, kMlx1Boundaries8);
    for (uint32_t bits : {5, 6, 8}) (*all)[{KVCodec::Name::mlx1Unrotated, bits}] = (*all)[{KVCodec::Name::mlx1, bits}];
    CodecTable& affine = (*all)[{KVCodec::Name::mlx1Affine4, 4}];
    for (int code = 0; code < 16; ++code) affine.levels.push_back(code - 7.5);
    for (int code = 1; code < 16; ++code) affine.boundaries.push_back(code - 8);
    for (uint32_t bits = 2; bits <= 8; ++bits) (*all)[{KVCodec::Name::turbo, bits}] = turboTable(bits);
    return all;
  }();
  return tables->at({codec.name, codec.bits});
}

std::vector<double> signsOf(KVCodec::Name codec, uint64_t headDim) {
  std::vector<double> signs(headDim, 1);
  for (uint64_t j = 0; j < headDim; ++j) {
    bool isNegative = false;
    if (codec == KVCodec::Name::turbo) isNegative = turboSignWords(headDim)[j / 32] >> j % 32 & 1;
    if (codec == KVCodec::Name::mlx1 && (headDim == 256 || headDim == 512)) isNegative = kMlx1Signs[j / 8] >> j % 8 & 1;
    if (isNegative) signs[j] = -1;
  }
  return signs;
}

std::vector<double> turboSizes(uint32_t bits, uint32_t candidates) {
  std::vector<double> sizes;
  for (uint32_t m = 0; m < candidates; ++m) {
    const double fromMiddle = m - (candidates - 1) / 2.0;
    sizes.push_back(candidates == 1 ? 1 : 1 + turboReach(bits) * fromMiddle / std::sqrt(candidates - 1.0));
  }
  return sizes;
}

}  // namespace mnk::test
