// FlashDecode on every device against attention in double, over cases that are drawn at random. Vectors that no row
// sees are NaN or infinite in all of them.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;
using Sequence = AttendedSequence;

struct Bin {
  const char* name;
  bool (*holds)(const Case&);
};

template <typename Holds>
bool anySequence(const Case& attend, Holds holds) {
  return std::ranges::any_of(attend.sequences, holds);
}
bool isRing(const Case& attend) {
  return attend.wrap == KVWrap::ring;
}
bool hasTurboCodes(const Case& attend) {
  const auto isTurbo = [](const auto& codec) { return codec && codec->name == KVCodec::Name::turbo; };
  return isTurbo(attend.keyCodec) || isTurbo(attend.valueCodec);
}
bool hasSpecial(const Case& attend, bool isKey, bool isCoded, bool isNaN) {
  return std::ranges::any_of(attend.specials, [&](const SpecialElement& special) {
    return special.isKey == isKey && (isKey ? attend.keyCodec : attend.valueCodec).has_value() == isCoded &&
           std::isnan(special.number) == isNaN;
  });
}
// A window that is wider by one position would reach one that the ring has overwritten.
bool seesAllThatARingHolds(const Case& attend) {
  FlashDecode op = planOp(attend);
  op.options.window += 1;
  return attend.options.window != 0 && attend.options.window < 0x7fffffff && !plan(op);
}

// Of dense, quantized and latent caches, and of prompts.
const Bin kBinsOfEveryKind[] = {
    {"a token-major cache", [](const Case& c) { return c.layout == KVLayout::tokenMajor; }},
    {"a ring", isRing},
    {"pinned slots", [](const Case& c) { return c.pinned > 1; }},
    {"a ring that overwrote positions",
     [](const Case& c) { return anySequence(c, [&](const Sequence& s) { return s.length > c.capacity; }); }},
    {"a ring that is just full",
     [](const Case& c) {
       return isRing(c) && anySequence(c, [&](const Sequence& s) { return s.length == c.capacity; });
     }},
    {"tokens that were taken back",
     [](const Case& c) { return anySequence(c, [](const Sequence& s) { return s.highest > s.length; }); }},
    {"a linear cache that is full", [](const Case& c) { return !isRing(c) && c.longest() == c.capacity; }},
    {"several sequences", [](const Case& c) { return c.querySequences() > 1; }},
    {"an empty sequence",
     [](const Case& c) { return anySequence(c, [](const Sequence& s) { return s.length == 0; }); }},
    {"sequences with rows of their own", [](const Case& c) { return c.isRagged() && c.sequences.size() > 1; }},
    {"rows elsewhere",
     [](const Case& c) { return anySequence(c, [](const Sequence& s) { return s.position.has_value(); }); }},
    {"keys after the rows", [](const Case& c) { return !c.options.isCausal; }},
    {"a window", [](const Case& c) { return c.options.window != 0 && !c.options.windowSeesPinned; }},
    {"a window and pinned positions",
     [](const Case& c) { return c.options.window != 0 && c.options.windowSeesPinned && c.pinned != 0; }},
    {"a softcap", [](const Case& c) { return c.options.softcap != 0; }},
    {"a mask", [](const Case& c) { return c.mask.has_value(); }},
    {"slopes", [](const Case& c) { return c.hasSlopes; }},
    {"sinks", [](const Case& c) { return c.hasSinks; }},
    {"partials", [](const Case& c) { return c.givesPartials; }},
    {"logarithms of sums", [](const Case& c) { return c.givesLogSumExp; }},
    {"splits", [](const Case& c) { return c.options.splits > 1; }},
    {"scratch memory", [](const Case& c) { return c.hasScratch; }},
    {"a shifted cache", [](const Case& c) { return c.cacheShift != 0; }},
    {"shifted queries", [](const Case& c) { return c.queryShift != 0; }},
    {"shifted results", [](const Case& c) { return c.intoShift != 0; }},
    {"a NaN", [](const Case& c) { return !c.specials.empty() && std::isnan(c.specials[0].number); }},
};

const Bin kBins[] = {
    {"a window that sees all that a ring holds", seesAllThatARingHolds},
    {"the largest window", [](const Case& c) { return c.options.window == 0x7fffffff; }},
    {"a ring of one slot", [](const Case& c) { return isRing(c) && c.capacity == 1; }},
    {"one slot beside pinned ones", [](const Case& c) { return c.pinned != 0 && c.pinned + 1 == c.capacity; }},
    {"pinned positions alone",
     [](const Case& c) {
       const auto hasLost = [&](const Sequence& s) { return s.length != 0 && s.highest >= s.length + c.capacity; };
       return c.pinned != 0 && anySequence(c, hasLost);
     }},
    {"the last position",
     [](const Case& c) { return anySequence(c, [](const Sequence& s) { return s.length == k2To31 - 1; }); }},
    {"positions below zero",
     [](const Case& c) { return anySequence(c, [](const Sequence& s) { return s.position && *s.position < 0; }); }},
    {"rows after a gap",
     [](const Case& c) {
       const auto isFar = [](const Sequence& s) { return s.position && *s.position > int64_t(s.length) + 900; };
       return anySequence(c, isFar);
     }},
    {"more rows than positions",
     [](const Case& c) {
       return anySequence(c, [&](const Sequence& s) { return !s.position && s.length != 0 && s.length < c.rows; });
     }},
    {"a sequence twice",
     [](const Case& c) {
       return c.sequences.size() == 2 && c.cacheSequences > 1 && c.sequences[0].sequence == c.sequences[1].sequence;
     }},
    {"one sequence of several", [](const Case& c) { return c.cacheSequences > 1 && c.querySequences() == 1; }},
    {"one key", [](const Case& c) { return c.longest() == 1; }},
    {"tiles but for one key", [](const Case& c) { return c.longest() > 16 && c.longest() % 32 == 31; }},
    {"whole tiles", [](const Case& c) { return c.longest() != 0 && c.longest() % 32 == 0; }},
    {"tiles and one key", [](const Case& c) { return c.longest() > 1 && c.longest() % 32 == 1; }},
    {"hundreds of keys", [](const Case& c) { return c.slots() > 300; }},
    {"a thousand keys", [](const Case& c) { return c.slots() > 1000; }},
    {"empty splits", [](const Case& c) { return c.options.splits == 33 && c.slots() < 500; }},
    {"a split for each tile", [](const Case& c) { return c.options.splits == 33 && c.longest() >= 16 * 33; }},
    {"a NaN in a key", [](const Case& c) { return hasSpecial(c, true, false, true); }},
    {"a NaN in a value", [](const Case& c) { return hasSpecial(c, false, false, true); }},
    {"an infinite key", [](const Case& c) { return hasSpecial(c, true, false, false); }},
    {"an infinite value", [](const Case& c) { return hasSpecial(c, false, false, false); }},
    {"a NaN scale of a key", [](const Case& c) { return hasSpecial(c, true, true, true); }},
    {"a NaN scale of a value", [](const Case& c) { return hasSpecial(c, false, true, true); }},
    {"huge scores", [](const Case& c) { return c.size == 3e4f; }},
    {"equal scores", [](const Case& c) { return c.size == 0; }},
    {"sinks that dwarf scores", [](const Case& c) { return c.hasSinks && c.sinkSize > 1000; }},
    {"a mask without holes", [](const Case& c) { return c.mask && !c.mask->hasHoles; }},
    {"a mask that is low for all keys", [](const Case& c) { return c.mask && c.mask->offset != 0; }},
    {"masked rows as partials", [](const Case& c) { return c.givesPartials && c.mask && c.mask->hasEmptyRows; }},
    {"mask columns without keys", [](const Case& c) { return c.mask && c.mask->extraKeys != 0; }},
    {"elements for the matrix kernel", [](const Case& c) { return c.fitsMatrices() && !c.isQuantized(); }},
    {"codes for the matrix kernel", [](const Case& c) { return c.fitsMatrices() && c.isQuantized(); }},
    {"dense keys beside codes", [](const Case& c) { return c.isMixed() && !c.keyCodec; }},
    {"dense values beside codes", [](const Case& c) { return c.isMixed() && !c.valueCodec; }},
    {"codes of two lengths", [](const Case& c) { return hasTurboCodes(c) && c.headDim < c.valueHeadDim; }},
    {"means of keys under a cap", [](const Case& c) { return c.hasKeyMeans && c.options.softcap != 0; }},
    {"means of keys in sums", [](const Case& c) { return c.hasKeyMeans && c.hasSinks && c.givesLogSumExp; }},
    {"means of values", [](const Case& c) { return c.hasValueMeans; }},
    {"channel scales", [](const Case& c) { return c.hasChannelScales; }},
    {"vectors of all sizes", [](const Case& c) { return c.hasWideScales; }},
    {"a scale factor", [](const Case& c) { return c.keyCodec && c.keyCodec->scaleFactor != 1; }},
};

// MNK_TEST_FULL=1 runs ten times the cases.
void runDrawn(AttentionKind kind) {
  attendOnEveryDevice(drawnAttentions(kind, std::getenv("MNK_TEST_FULL") ? 10 : 1));
}

}  // namespace

TEST(FlashDecode, AttendsToDenseCaches) {
  runDrawn(AttentionKind::dense);
}

TEST(FlashDecode, AttendsToQuantizedCaches) {
  runDrawn(AttentionKind::quantized);
}

TEST(FlashDecode, AttendsToLatentCaches) {
  runDrawn(AttentionKind::latent);
}

TEST(FlashDecode, AttendsWithPrompts) {
  runDrawn(AttentionKind::prompt);
}

TEST(FlashDecode, AttendsInRareCases) {
  attendOnEveryDevice(rareAttentions());
}

// What no case has could be wrong unseen.
TEST(FlashDecode, DrawsHitEveryBin) {
  std::vector<Case> cases;
  const auto expectHit = [&](const std::string& name, const auto& holds) {
    if (std::ranges::none_of(cases, holds)) fail(__FILE__, __LINE__, fmt::format("no case has {}", name));
  };
  for (const AttentionKind kind : kEveryKind) {
    const Context context(fmt::format("kind {}", static_cast<int>(kind)));
    cases = drawnAttentions(kind);
    for (const Bin& bin : kBinsOfEveryKind) expectHit(bin.name, bin.holds);
  }
  cases = allAttentions();
  for (const Bin& bin : kBins) expectHit(bin.name, bin.holds);
  for (const DType dtype : kEveryFloat) {
    for (const auto& [keys, values] : denseHeadDims()) {
      expectHit(fmt::format("{} and {} of {}", keys, values, name(dtype)), [&](const Case& c) {
        return c.cache == dtype && !c.isQuantized() && !c.isLatent && c.headDim == keys && c.valueHeadDim == values;
      });
    }
    for (uint32_t places = 0; places < 4; ++places) {
      expectHit(fmt::format("queries of {} in places {}", name(dtype), places), [&](const Case& c) {
        return c.queries == dtype && c.queryPlaces == static_cast<QueryPlaces>(places) && c.querySequences() > 1;
      });
    }
    for (uint32_t rank = 2; rank <= 4; ++rank) {
      expectHit(fmt::format("results of {} with {} axes", name(dtype), rank),
                [&](const Case& c) { return c.into == dtype && c.resultRank == rank && !c.givesPartials; });
      for (const bool isFinite : {false, true}) {
        expectHit(fmt::format("a mask of {} with {} axes, {} holes", name(dtype), rank, isFinite ? "finite" : "usual"),
                  [&](const Case& c) {
                    return c.mask && c.mask->dtype == dtype && c.mask->rank == rank &&
                           c.mask->hasFiniteHoles == isFinite;
                  });
      }
    }
  }
  for (const float size : {1e-16f, 1e-9f, 7e4f, 1e30f}) {
    expectHit(fmt::format("queries of {}", size), [&](const Case& c) { return c.size == size && c.sizes.empty(); });
    for (const bool isCoded : {false, true}) {
      expectHit(fmt::format("queries of {} and others over {}", size, isCoded ? "codes" : "elements"),
                [&](const Case& c) { return c.size == size && !c.sizes.empty() && c.isQuantized() == isCoded; });
    }
  }
  for (uint32_t served = 0; served < 8; ++served) {
    expectHit(fmt::format("a mask whose axes of 1 are {:#b}", served), [&](const Case& c) {
      return c.mask && c.mask->rank == 4 && c.mask->servesAllSequences == ((served & 4) != 0) &&
             c.mask->servesAllHeads == ((served & 2) != 0) && c.mask->servesAllRows == ((served & 1) != 0);
    });
  }
  for (const auto& [codec, headDim] : attendedCodings()) {
    expectHit(fmt::format("{} at {}", codec.text(), headDim), [&](const Case& c) {
      return c.keyCodec == codec && c.headDim == headDim && c.valueCodec == codec && c.valueHeadDim == headDim;
    });
  }
  for (const uint64_t group : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 128}) {
    expectHit(fmt::format("groups of {}", group), [&](const Case& c) { return c.group == group; });
  }
  for (uint64_t rows = 1; rows <= 9; ++rows) {
    expectHit(fmt::format("{} rows", rows), [&](const Case& c) { return c.rows == rows && c.group > 1; });
  }
  for (uint64_t ring = 1; ring <= 6; ++ring) {
    for (uint64_t phase = 0; phase < ring; ++phase) {
      expectHit(fmt::format("phase {} of a ring of {}", phase, ring), [&](const Case& c) {
        const auto isAt = [&](const Sequence& s) {
          return s.length > c.capacity && (s.length - c.pinned) % ring == phase;
        };
        return isRing(c) && c.capacity - c.pinned == ring && anySequence(c, isAt);
      });
    }
  }
  for (const NumberOption& option : numberOptions()) {
    for (const double number : option.valid) {
      if (!option.isFloat) continue;
      expectHit(fmt::format("{} {}", option.name, number), [&](const Case& c) {
        AttentionOptions expected;
        option.set(expected, number);
        return option.get(c.options) == option.get(expected);
      });
    }
  }
}

// The same call gives the same bytes, whatever order lanes and threadgroups run in, and with memory that an earlier
// call has left.
TEST(FlashDecode, GivesTheSameBytesEveryTime) {
  using Merge = AttentionOptions::Merge;
  Seeded random(4);
  std::vector<PreparedFlashDecode> all;
  for (const auto& [splits, merge] : {std::pair{1u, Merge::automatic}, {5, Merge::separate}, {7, Merge::inKernel}}) {
    const Case attend{.name = fmt::format("{} splits", splits),
                      .rows = 3,
                      .sequences = {{0, 150}},
                      .givesLogSumExp = true,
                      .options = {.splits = splits, .merge = merge}};
    all.push_back(prepared(attend, random));
    all.back().isForAnyDevice = merge == Merge::separate;
  }
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const PreparedFlashDecode& each : all) {
      const Context context(each.name);
      if (each.attend.options.merge == Merge::inKernel && !device->profile().ordersThreadgroups) continue;
      const FlashDecodeRun first(device, each, random), second(device, each, random);
      for (int round = 0; round < 3; ++round) {
        CommandEncoder encoder(device, "again");
        for (const FlashDecodeRun* opRun : {&first, &second, &first}) REQUIRE(encoder.encode(opRun->op()));
        REQUIRE(REQUIRE(encoder.commit()).wait());
        first.expectResults();
        for (const char* result : {"into", "log sum exp"}) EXPECT(first.now(result) == second.now(result));
      }
    }
  });
}

}  // namespace mnk::test
