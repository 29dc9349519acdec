// XCTest for Linux: the part of Apple's API that the Objective-C++ tests use, so that the same files run here and in
// Xcode. Waiting blocks the thread; there is no run loop.
#pragma once
#import <XCTest/XCTWaiter.h>
#import <XCTest/XCTestAssertions.h>
#import <XCTest/XCTestCase.h>
#import <XCTest/XCTestExpectation.h>
