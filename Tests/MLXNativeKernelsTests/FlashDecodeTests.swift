import Foundation
import MLXNativeKernels
import XCTest

/// Attention through the Swift API, compared with the reference over the appended tokens.
final class FlashDecodeTests: AttentionTestCase {
    func testOptionsAndRingsReachTheOp() throws {
        let cache = try makeCache(capacity: 12)
        let tokens = someTokens(30)
        let q = try queries(2)
        let out = try Tensor.zeros(shape: [2, heads, headDim], dtype: .float16, on: device)
        let logSumExp = try Tensor.zeros(shape: [2, heads], on: device)
        try device.encode { step in
            try step.append(keys: tensor(tokens.map(\.key)), values: tensor(tokens.map(\.value)), to: cache)
            try step.attend(q, over: cache, into: out, .init(scale: 1 / sqrt(128), window: 7), logSumExp: logSumExp)
        }.wait()
        let expected = try attended(
            q, over: tokens, held: Array(18..<30), scale: 1 / Float(128).squareRoot(), window: 7)
        try assertClose(try Tensor(out.array(of: Float.self), on: device), expected, accuracy: 1e-3)
        // Seven scores near 0.
        for number in try logSumExp.array(of: Float.self) { XCTAssertEqual(Double(number), log(7), accuracy: 0.5) }
    }

    func testConversationsContinueAPromptInAnotherCache() throws {
        let prompt = try makeCache()
        let conversations = try makeCache(sequences: 3)
        let shared = someTokens(9)
        let counts = [4, 1, 2]
        let tokens = someTokens(7)
        let q = try queries(7)
        let out = try Tensor.zeros(shape: [7, heads, headDim], on: device)
        let again = try Tensor.zeros(shape: [7, heads, headDim], on: device)
        try device.encode { step in
            try step.append(keys: tensor(shared.map(\.key)), values: tensor(shared.map(\.value)), to: prompt)
            try step.appendAndAttend(
                queries: q, keys: tensor(tokens.map(\.key)), values: tensor(tokens.map(\.value)), over: conversations,
                sequences: [2, 0, 1], rowCounts: counts, after: [CachePrefix(prompt)], into: out)
            try step.attend(
                q, over: conversations, sequences: [2, 0, 1], rowCounts: counts,
                after: [CachePrefix(prompt, sequence: 0)], into: again)
        }.wait()
        var row = 0
        for count in counts {
            let rows = row..<row + count
            let expected = try attended(try q[rows], over: shared + tokens[rows])
            try assertClose(try out[rows], expected, "rows from \(row)")
            try assertClose(try again[rows], expected, "rows from \(row)")
            row += count
        }
        assertRefused(op: "AttentionCache.attend", what: "a sequence comes twice") {
            try device.encode {
                try $0.attend(
                    q, over: conversations, sequences: [2, 0, 1], rowCounts: counts,
                    after: [CachePrefix(conversations, sequence: 0)], into: out)
            }
        }
    }

    func testPartsOfTwoCachesMerge() throws {
        let tokens = someTokens(12)
        let q = try queries(1)
        let parts = try AttentionPartials.zeros(shape: [2, 1, heads, headDim], on: device)
        let out = try Tensor.zeros(shape: [1, heads, headDim], on: device)
        let caches = try [makeCache(), makeCache()]
        var decodes: [FlashDecode] = []
        try device.encode { step in
            for (index, range) in [0..<8, 8..<12].enumerated() {
                try step.append(
                    keys: tensor(tokens[range].map(\.key)), values: tensor(tokens[range].map(\.value)),
                    to: caches[index])
                decodes.append(
                    FlashDecode(
                        q, over: .dense(KVCacheView(keys: caches[index].keys, values: caches[index].values)),
                        sequences: [AttendedSequence(length: range.count, position: 11 - range.lowerBound)],
                        intoPartials: try parts.part(index)))
                try step.encode(decodes[index])
            }
            try step.encode(MergePartials(parts, into: out))
        }.wait()
        try assertClose(out, try attended(q, over: tokens))
        decodes[0].sequences[0].position = nil
        assertRefused(op: "FlashDecode", what: "partials do not say where their rows are") { try decodes[0].plan() }
        XCTAssertEqual(try MergePartials(parts, into: out).plan().dispatches.count, 1)
        assertRefused(op: "AttentionPartials", got: "part 2") { try parts.part(2) }
        assertRefused(op: "AttentionPartials", got: "part -1") { try parts.part(-1) }
    }

    func testTheOpUsesCallerMemory() throws {
        let tokens = someTokens(6)
        let keys = try tensor(tokens.map(\.key))
        let values = try tensor(tokens.map(\.value))
        let view = KVCacheView(keys: keys, values: values, layout: .tokenMajor)
        let q = try queries(1).reshaped([heads, headDim])
        let out = try Tensor.zeros(shape: [heads, headDim], on: device)
        let attend = FlashDecode(
            q, over: view, length: 6, into: out, .init(splits: .exactly(2), kernel: .vector, merge: .separate))
        try device.encode { try $0.encode(attend) }.wait()
        try assertClose(out, try attended(q, over: tokens))

        let plan = try attend.plan(for: device)
        XCTAssertEqual(plan.dispatches.count, 2)
        XCTAssertGreaterThan(plan.scratchBytes, 0)
        XCTAssertEqual(try attend.plan().dispatches.count, 2)
        var withScratch = attend
        withScratch.scratch = try Tensor.zeros(shape: [plan.scratchBytes], dtype: .uint8, on: device)
        try device.encode { try $0.encode(withScratch) }.wait()
        XCTAssertNotEqual(try XCTUnwrap(withScratch.scratch).bytes(), [UInt8](repeating: 0, count: plan.scratchBytes))

        var quantized = try QuantizedKVCacheView(
            keys: .zeros(.turbo(.bits8), heads: kvHeads, headDim: headDim, capacity: 8, on: device),
            values: .zeros(.turbo(.bits8), heads: kvHeads, headDim: headDim, capacity: 8, on: device))
        quantized.wrap = .ring
        try device.encode { step in
            try step.encode(KVCacheQuantize(keys: keys, values: values, into: quantized, at: 0))
            try step.encode(FlashDecode(q, over: quantized, length: 6, into: out))
        }.wait()
        try assertClose(out, try attended(q, over: tokens), accuracy: 0.02)
    }

    func testNumbersOutOfRangeAreRefused() throws {
        let cache = try makeCache(.dense(.float32), capacity: 4, whenFull: .fail)
        let (q, out) = (try queries(1), try zeros(1))
        for (options, what, got) in [
            (.init(window: -3), "window is out of range", "-3"), (.init(splits: .exactly(0)), "splits", "exactly 0"),
            (.init(splits: .exactly(-1)), "splits", "exactly -1"),
        ] as [(AttentionOptions, String, String)] {
            assertRefused(op: "AttentionCache", what: what, got: got) {
                try device.encode { try $0.attend(q, over: cache, into: out, options) }
            }
        }
        assertRefused(op: "FlashDecode", what: "length is out of range") {
            try FlashDecode(q, over: KVCacheView(keys: cache.keys, values: cache.values), length: -1, into: out).plan()
        }
    }
}
