// Enums are passed on as numbers, so each case must have the number of its counterpart in the core.
#include <cstdint>

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
