// Benchmarks of the ops on the Host device, and of encoding. Each prints a heading and its measurements.
#pragma once
namespace mnk::bench {

// Each op against memcpy of the same number of bytes by the same number of threads; the least of interleaved runs.
void benchWrites();
// Also against a variant that reads cosines and sines from a table.
void benchRotations();
void benchQuantization();
// How encoding time grows with the encoded work. Nothing runs.
void benchEncoding();
// The CPU cost of encoding a layer of a decode step: rotate, append, attend.
void benchLayer();

}  // namespace mnk::bench
