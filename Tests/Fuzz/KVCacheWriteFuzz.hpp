// Cases of KVCacheWrite, drawn at random, and what other ops that store tokens have in common with them.
#pragma once
#include "OpFuzz.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"

namespace mnk::fuzz {

// Moves sources to other places now and then, or leaves out values that the cache has. Rows are those of the case.
template <typename Op>
void varySources(Op& op, Arena& arena, Seeded& random) {
  if (coin(random, 1, 3)) op.keys = scatteredSource(op.keys, op.sourceLayout, arena, random);
  if (op.values && coin(random, 1, 3)) op.values = scatteredSource(*op.values, op.sourceLayout, arena, random);
  if (coin(random, 1, 12)) op.values.reset();
  if (op.rows) op.sequence = edge(random, {}), op.position = edge(random, {});  // neither is read
}
HeadsView scatteredSource(const HeadsView& source, KVLayout layout, Arena& arena, Seeded& random);

// Writes row indices that are tensors. Some name no place, which the kernel skips.
void fillRows(const std::optional<KVCacheWrite::Rows>& rows, const KVCacheView& into, Arena& arena, Seeded& random);
// Whether all tokens that a call stores are there; else it should not have been accepted. The reference would count
// through those that are not.
bool expectTokens(const KVCacheWrite& op);
// Whether the kernel reads them, so that a plan does not know what is stored.
bool areRead(const std::optional<KVCacheWrite::Rows>& rows);

}  // namespace mnk::fuzz
