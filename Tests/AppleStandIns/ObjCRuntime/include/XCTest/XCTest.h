// XCTest for Linux: the part of Apple's that test files in Objective-C++ use, so that one file is a test here and in
// Xcode. Waiting blocks the thread; there is no run loop to turn meanwhile.
#pragma once
#import <XCTest/XCTWaiter.h>
#import <XCTest/XCTestAssertions.h>
#import <XCTest/XCTestCase.h>
#import <XCTest/XCTestExpectation.h>
