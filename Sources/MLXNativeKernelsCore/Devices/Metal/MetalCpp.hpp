// The parts of metal-cpp that this device uses. Include this instead of <Metal/Metal.hpp>, whose MTLIOCompressor.hpp
// defines four functions that cannot be weak, as MetalCppDefinitions.cpp needs them.
#pragma once
#if !__has_include(<Metal/MTLComputeCommandEncoder.hpp>)
#error "metal-cpp is missing: `git submodule update --init` on Apple platforms, `.ci/metal-cpp` on Linux"
#endif

// metal-cpp checks only Apple's name for the architecture.
#if defined(__aarch64__) && !defined(__arm64__)
#define __arm64__ 1
#define MNK_NAMED_ARM64
#endif

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Weverything"
#include <Foundation/Foundation.hpp>
#include <Metal/MTLArgument.hpp>
#include <Metal/MTLBuffer.hpp>
#include <Metal/MTLCommandBuffer.hpp>
#include <Metal/MTLCommandQueue.hpp>
#include <Metal/MTLComputeCommandEncoder.hpp>
#include <Metal/MTLComputePass.hpp>
#include <Metal/MTLComputePipeline.hpp>
#include <Metal/MTLCounters.hpp>
#include <Metal/MTLDevice.hpp>
#include <Metal/MTLFence.hpp>
#include <Metal/MTLFunctionConstantValues.hpp>
#include <Metal/MTLLibrary.hpp>
#include <Metal/MTLResource.hpp>
#pragma clang diagnostic pop

#ifdef MNK_NAMED_ARM64
#undef __arm64__
#undef MNK_NAMED_ARM64
#endif
