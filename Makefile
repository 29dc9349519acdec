# What there is to type. The recipes read as documentation; longer ones are scripts in .ci/.
# ARGS reaches the programs: make demo ARGS="--tokens 12"

# Here kernels run on the processor: the library is optimized, and tests are not, which halves the time of their build.
package := $(realpath .)
export MNK_OPTIMIZE := $(package)
# Tests run the Metal device too, on a software Metal, in a build of their own that no user of the package sees. It has
# lines but no other debug information, and no index; Swift keeps its index, by which SwiftPM finds tests on Linux.
tested := --scratch-path .build/tests -Xcxx -gline-tables-only
ifeq ($(shell uname), Linux)
tested += -Xcxx -index-store-path -Xcxx ''
endif
test check shaders: export MNK_SOFT_METAL := $(package)
test check shaders: export MNK_TOOLS := $(package)
check bench decode-bench: export MNK_BENCHES := $(package)
check bench decode-bench: export MNK_HOST_AVX512 := $(package)

.DEFAULT_GOAL := help
.PHONY: help setup build test test-consumer test-objc check shaders fuzz check-asan check-tsan check-memory \
  check-arm64 check-apple mac-report tables embed unify demo bench decode-bench docs format lint layering ci clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## install what a build needs and lacks, saying what
	@.ci/setup

build: setup ## build the library and the examples
	swift build

test: setup ## run every test: Swift, Objective-C, C++, C and packaging; FILTER=FlashDecode runs the tests of that name
	@FILTER="$(FILTER)" .ci/test $(tested)

test-consumer: setup ## build a package that depends on this one, in release, and run it
	@Tests/Packaging/consumer.sh

test-objc: setup ## the Objective-C++ tests on Linux, on both devices; ARGS=--sanitize or --analyze
	@.ci/objc $(ARGS)

check: setup ## every suite under every check: FILTER=KVCacheWrite SEEDS=50 narrow and repeat
	@FILTER="$(FILTER)" SEEDS="$(SEEDS)" SEED="$(SEED)" .ci/check $(tested)

shaders: setup ## would a Mac's compiler take the kernels, as far as that can be told without it?
	swift run $(tested) shader-check --all Shaders/*/*.metal Shaders/*/*.h
	swift run $(tested) shader-check --tests Tests/Shaders/BlockSums.metal Tests/Shaders/BenchAttention.metal \
	  Tests/Shaders/CodeSearch.metal Tests/Shaders/RotaryTable.metal
	@.ci/unroll

check-apple: setup ## type-check what is compiled for a Mac; ARGS=--all-editions: for an iPhone, too
	@.ci/check-apple $(ARGS)

tables: ## compute the constants of the codec again; ARGS="--search 50000" looks for better signs
	@.ci/make-tables $(ARGS)

unify: ## write the lists of .cpp files that SwiftPM compiles together
	@.ci/unify

embed: ## write the text of the shaders, and its stamp, into the core again
	@.ci/embed-shaders

fuzz: setup ## attack the C API with 400,000 random calls; ARGS="--seed 7"
	@.ci/fuzz $(ARGS)

check-asan: setup ## the C++ tests and a short fuzz under AddressSanitizer and UndefinedBehaviorSanitizer
	@.ci/sanitize address $(FILTER)

check-tsan: setup ## the same under ThreadSanitizer, one thread for each lane
	@.ci/sanitize thread $(FILTER)

check-memory: setup ## every allocation of the library fails once, under AddressSanitizer; ARGS="--device metal --stride 1"
	@.ci/inject $(ARGS)

mac-report: ## write mac-report.txt: versions, device, results of tests and benchmarks, without names; ARGS=--versions
	@.ci/mac-report $(ARGS)

demo: setup ## write text with a small language model through the kernels; ARGS=--help
	swift run decode-demo $(ARGS)

bench: setup ## measure the kernels against plain C++ and memcpy, and what encoding costs
	swift run -c release bench $(ARGS)

decode-bench: setup ## measure FlashDecode against reading as much and plain C++; ARGS=--help
	swift run -c release decode-bench $(ARGS)

check-arm64: setup ## build the core for arm64 and run its tests there, under qemu where needed
	@.ci/check-arm64

docs: ## build the documentation into .build/docs; whatever DocC warns about is a failure
	@.ci/docs

format: ## format C++, shaders and Swift in place
	@.ci/format write

lint: ## check the format
	@.ci/format check

layering: ## check which folder may include which, and that each of these checks can fail
	@.ci/layering && Tests/Packaging/layering-selftest.sh

ci: ## all checks, as they run before a merge
	@.ci/run

clean: ## remove what was built
	rm -rf .build
