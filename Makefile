# Recipes are short; longer ones are scripts in .ci/. ARGS is passed to programs: make demo ARGS="--tokens 12"

# Kernels run on the CPU here, so the library is optimized. Tests are not, which halves their build time.
package := $(realpath .)
export MNK_OPTIMIZE := $(package)
# The demo is a package of its own, so that it is no part of programs that use this one.
examples := --package-path Examples --scratch-path $(package)/.build/examples
# Tests also run the Metal device on a software Metal, in a separate build that clients of the package never see. The
# examples share its objects but not its manifest, so SwiftPM must not reuse one. It has
# line tables but no other debug information, and no index except Swift's, with which SwiftPM finds tests on Linux.
tested := --scratch-path $(package)/.build/tests --disable-build-manifest-caching -Xcxx -gline-tables-only
ifeq ($(shell uname), Linux)
tested += -Xcxx -index-store-path -Xcxx ''
endif
test check: export MNK_SOFT_METAL := $(package)
test check: export MNK_TOOLS := $(package)
check bench: export MNK_BENCHES := $(package)
check bench: export MNK_HOST_AVX512 := $(package)

.DEFAULT_GOAL := help
.PHONY: help setup build test test-consumer test-objc check shaders fuzz check-asan check-tsan check-memory \
  check-arm64 check-apple mac-report compare proof tables generate embed demo bench docs format lint layering ci clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## install missing build dependencies
	@.ci/setup

build: setup ## build the library and the examples
	swift build $(examples)

test: setup ## run every test: Swift, Objective-C, C++, C and packaging; FILTER=FlashDecode runs only C++ tests with that prefix
	@FILTER="$(FILTER)" .ci/test $(tested)

test-consumer: setup ## build and run, in release, a package that depends on this one
	@Tests/Packaging/consumer.sh

test-objc: setup ## the Objective-C++ tests on Linux, on both devices; ARGS=--sanitize or --analyze
	@.ci/objc $(ARGS)

check: setup ## every suite under every check: FILTER=KVCacheWrite SEEDS=50 narrow and repeat
	@FILTER="$(FILTER)" SEEDS="$(SEEDS)" SEED="$(SEED)" .ci/check $(tested)

shaders: setup ## check that Apple's compiler would accept the kernels, as far as Linux can tell
	@Tests/Tools/ShaderCheck/shader_check.py --all Shaders/*/*.metal Shaders/*/*.h
	@Tests/Tools/ShaderCheck/shader_check.py --tests Tests/Shaders/BlockSums.metal Tests/Shaders/CodeSearch.metal
	@.ci/unroll

check-apple: setup ## type-check what a Mac compiles; ARGS=--all-editions adds iOS
	@.ci/check-apple $(ARGS)

tables: ## recompute the codec constants; ARGS="--search 50000" searches for better signs
	@.ci/make-tables $(ARGS)

generate: ## write the Generated folders from the description of the API in Sources/API
	@Sources/API/generate.py

embed: ## regenerate the embedded shader text and its stamp
	@.ci/embed-shaders

fuzz: setup ## attack the C API with 400,000 random calls; ARGS="--seed 7"
	@.ci/fuzz $(ARGS)

check-asan: setup ## the C++ tests and a short fuzz under AddressSanitizer and UndefinedBehaviorSanitizer
	@.ci/sanitize address $(FILTER)

check-tsan: setup ## the same under ThreadSanitizer, with a thread for each lane
	@.ci/sanitize thread $(FILTER)

check-memory: setup ## every allocation of the library fails once, under AddressSanitizer; ARGS="--device metal --stride 1"
	@.ci/inject $(ARGS)

proof: setup ## replay every fault that the tests must notice; ARGS="--only core --fault 'ring-*'" or --list
	@.ci/proof $(ARGS)

mac-report: ## write mac-report.txt: versions, device, results of tests and benchmarks and of make compare, without names; ARGS=--versions
	@.ci/mac-report $(ARGS)

compare: setup ## measure attention beside MLX, which this installs, and llama.cpp; writes mac-comparison.md; ARGS=--help
	@.ci/compare $(ARGS)

demo: setup ## generate text with a small language model; ARGS=--help
	swift run $(examples) decode-demo $(ARGS)

bench: setup ## measure kernels against plain C++, memcpy and reads, and the cost of encoding; ARGS=decode, ARGS=--help
	swift run -c release bench $(ARGS)

check-arm64: setup ## build the core for arm64 and run its tests, under qemu if needed
	@.ci/check-arm64

docs: ## build the documentation into .build/docs; a DocC warning is a failure
	@.ci/docs

format: ## format C++, shaders and Swift in place
	@.ci/format write

lint: ## check the format, and that Generated folders are what Sources/API describes
	@.ci/format check

layering: ## check the layering rules, and that each rule can fail
	@.ci/layering && Tests/Packaging/layering-selftest.sh

ci: ## run all checks required before a merge
	@.ci/run

clean: ## remove build products
	rm -rf .build
