// Enums are passed on as numbers, so each case must have the number of its counterpart in the core.
#include <cstdint>

#include "MLXNativeKernels/HostDevice.hpp"
#import "ObjC/Core.hpp"

using namespace mnk;

template <auto Binding, auto Core>
constexpr bool kSame = static_cast<int64_t>(Binding) == static_cast<int64_t>(Core);

static_assert(kSame<MNKErrorInvalidArgument, ErrorCode::invalidArgument>);
static_assert(kSame<MNKErrorUnsupported, ErrorCode::unsupported>);
static_assert(kSame<MNKErrorOutOfMemory, ErrorCode::outOfMemory>);
static_assert(kSame<MNKErrorLibraryNotFound, ErrorCode::libraryNotFound>);
static_assert(kSame<MNKErrorShaderBuild, ErrorCode::shaderBuild>);
static_assert(kSame<MNKErrorDeviceFault, ErrorCode::deviceFault>);
static_assert(kSame<MNKErrorDeviceLost, ErrorCode::deviceLost>);
static_assert(kSame<MNKErrorTimeout, ErrorCode::timeout>);
static_assert(kSame<MNKErrorPageFault, ErrorCode::pageFault>);
static_assert(kSame<MNKErrorNotPermitted, ErrorCode::notPermitted>);
static_assert(kSame<MNKErrorWouldDeadlock, ErrorCode::wouldDeadlock>);
static_assert(kSame<MNKElementTypeFloat32, DType::f32>);
static_assert(kSame<MNKElementTypeFloat16, DType::f16>);
static_assert(kSame<MNKElementTypeBFloat16, DType::bf16>);
static_assert(kSame<MNKElementTypeUInt8, DType::u8>);
static_assert(kSame<MNKElementTypeUInt16, DType::u16>);
static_assert(kSame<MNKElementTypeUInt32, DType::u32>);
static_assert(kSame<MNKElementTypeInt32, DType::i32>);
static_assert(kSame<MNKKVLayoutHeadMajor, KVLayout::headMajor>);
static_assert(kSame<MNKKVLayoutTokenMajor, KVLayout::tokenMajor>);
static_assert(kSame<MNKKVWrapLinear, KVWrap::linear>);
static_assert(kSame<MNKKVWrapRing, KVWrap::ring>);
static_assert(kSame<MNKWhenFullFail, KVWrap::linear>);
static_assert(kSame<MNKWhenFullOverwriteOldest, KVWrap::ring>);
static_assert(kSame<MNKKVCodecTurbo, KVCodecName::turbo>);
static_assert(kSame<MNKKVCodecMLX1, KVCodecName::mlx1>);
static_assert(kSame<MNKKVCodecMLX1Unrotated, KVCodecName::mlx1Unrotated>);
static_assert(kSame<MNKKVCodecMLX1Affine4, KVCodecName::mlx1Affine4>);
static_assert(kSame<MNKKVScaleRuleUnbiased, KVScaleRule::unbiased>);
static_assert(kSame<MNKKVScaleRuleLeastSquares, KVScaleRule::leastSquares>);
static_assert(kSame<MNKKVNonFiniteZero, KVNonFinite::zero>);
static_assert(kSame<MNKKVNonFinitePropagate, KVNonFinite::propagate>);
static_assert(kSame<MNKQuantizedPlanesBoth, KVQuantizedPlanes::both>);
static_assert(kSame<MNKQuantizedPlanesKeys, KVQuantizedPlanes::keys>);
static_assert(kSame<MNKQuantizedPlanesValues, KVQuantizedPlanes::values>);
static_assert(kSame<MNKKVDomainOriginal, KVDomain::original>);
static_assert(kSame<MNKKVDomainRotated, KVDomain::rotated>);
static_assert(kSame<MNKRotaryLayoutInterleavedPairs, RotaryLayout::interleavedPairs>);
static_assert(kSame<MNKRotaryLayoutHalfSplit, RotaryLayout::halfSplit>);
static_assert(kSame<MNKRotaryLayoutMRoPE, RotaryLayout::mrope>);
static_assert(kSame<MNKRotaryLayoutVision, RotaryLayout::vision>);
static_assert(kSame<MNKRotaryLayoutIMRoPE, RotaryLayout::imrope>);
static_assert(kSame<MNKRotaryPairingHalfOfRopeDim, RotaryPairing::halfOfRopeDim>);
static_assert(kSame<MNKRotaryPairingHalfOfHeadDim, RotaryPairing::halfOfHeadDim>);
static_assert(kSame<MNKRotaryPairingNeighbors, RotaryPairing::neighbors>);
static_assert(kSame<MNKRotaryOtherAxis0, RotaryOtherAxis::axis0>);
static_assert(kSame<MNKRotaryOtherAxis3, RotaryOtherAxis::axis3>);
static_assert(kSame<MNKFlashDecodeKernelAutomatic, FlashDecodeKernel::automatic>);
static_assert(kSame<MNKFlashDecodeKernelVector, FlashDecodeKernel::vector>);
static_assert(kSame<MNKFlashDecodeKernelMatrix, FlashDecodeKernel::matrix>);
static_assert(kSame<MNKFlashDecodeMergeAutomatic, FlashDecodeMerge::automatic>);
static_assert(kSame<MNKFlashDecodeMergeSeparate, FlashDecodeMerge::separate>);
static_assert(kSame<MNKFlashDecodeMergeInKernel, FlashDecodeMerge::inKernel>);
static_assert(kSame<MNKTuningTable, Tuning::table>);
static_assert(kSame<MNKTuningMeasure, Tuning::measure>);
static_assert(kSame<MNKAccessRead, Access::read>);
static_assert(kSame<MNKAccessWrite, Access::write>);
static_assert(kSame<MNKAccessReadWrite, Access::readWrite>);
static_assert(kSame<MNKLibraryOriginProgram, LibraryOrigin::Kind::program>);
static_assert(kSame<MNKLibraryOriginGivenText, LibraryOrigin::Kind::givenText>);
static_assert(kSame<MNKLibraryOriginGivenFile, LibraryOrigin::Kind::givenFile>);
static_assert(kSame<MNKLibraryOriginModuleBundle, LibraryOrigin::Kind::moduleBundle>);
static_assert(kSame<MNKLibraryOriginFrameworkBundle, LibraryOrigin::Kind::frameworkBundle>);
static_assert(kSame<MNKLibraryOriginBesideCode, LibraryOrigin::Kind::besideCode>);
static_assert(kSame<MNKLibraryOriginMainBundle, LibraryOrigin::Kind::mainBundle>);
static_assert(kSame<MNKLibraryOriginEmbeddedText, LibraryOrigin::Kind::embeddedText>);
static_assert(kSame<MNKHostLevelBest, host::Level::best>);
static_assert(kSame<MNKHostLevelBaseline, host::Level::baseline>);
static_assert(kSame<MNKHostLevelAVX2, host::Level::avx2>);
static_assert(kSame<MNKHostLevelAVX512, host::Level::avx512>);
static_assert(kSame<MNKHostCheckingOff, host::Checking::off>);
static_assert(kSame<MNKHostCheckingGuarded, host::Checking::guarded>);
static_assert(kSame<MNKHostCheckingFull, host::Checking::full>);
