// What the calls of a cache program must do: what their errors say, where sequences stand after them, and the numbers
// that kernels write.
#pragma once
#include <string_view>
#include <vector>

#include "CacheCall.hpp"
#include "CacheModel.hpp"
#include "CacheOperands.hpp"

namespace mnk::fuzz {

// A call, with all that it needs to be made again.
struct DrawnCall {
  CacheCall call;
  std::vector<StepEntry> entries{};
  RowOptions options{};
  Floats queries{}, keys{}, values{};
  uint64_t axis = 0;                             // sequences of the views' axis for them; 0: none
  bool takesQueries = false, takesKeys = false;  // as a rotation of the encoder has left them in memory
};

class CacheReference {
 public:
  CacheReference(const CacheNumbers& cache, uint64_t queryHeads);

  const CacheModel& model() const { return model_; }  // with the calls of the open encoder
  const CacheModel& committed() const { return committed_; }
  uint64_t queryHeads() const { return queryHeads_; }

  // What an error must say; empty where the call is fine.
  std::string_view refusalOf(const DrawnCall& drawn) const;
  // Makes a call that is fine.
  void apply(const DrawnCall& drawn);
  // Cuts where no encoder is open.
  void cut(uint32_t sequence, uint64_t position);
  // Returns all that the encoder has written.
  std::vector<ExpectedNumbers> commit();
  // Another encoder begins. What was not committed is gone.
  void begin();

 private:
  std::vector<int64_t> turnsOf(const DrawnCall& drawn);
  void rotate(const DrawnCall& drawn, Floats& queries, Floats& keys);
  void store(const CacheCall& call, Floats& keys);
  void expectRotated(const HeadsSpec& into, const Floats& numbers, const CacheRotation& rotation);

  uint64_t queryHeads_;
  CacheModel model_;
  CacheModel committed_ = model_;
  // Codes of 8 bits, and the 16-bit probabilities of latent caches, are near enough to tell positions apart.
  double slack_;
  std::vector<ExpectedNumbers> written_;
};

}  // namespace mnk::fuzz
