// The parts of metal-cpp that a compute library needs, on Linux too.
#pragma once
#if defined(__aarch64__) && !defined(__arm64__)
#define __arm64__ 1  // metal-cpp checks only Apple's name for the architecture
#endif
#include <Foundation/Foundation.hpp>
#include <Metal/MTLArgument.hpp>
#include <Metal/MTLBuffer.hpp>
#include <Metal/MTLCommandBuffer.hpp>
#include <Metal/MTLCommandEncoder.hpp>
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
#include <Metal/MTLTypes.hpp>
