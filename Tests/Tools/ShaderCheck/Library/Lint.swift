/// Rules of the Metal compiler and of this package that the strict compile does not check. They use the tokens of the
/// source, preprocessed as on a Mac, except that macros of Shaders/Common/MetalCompat.h are not expanded.
struct Lint {
    let source: SourceText
    private(set) var findings: [Finding] = []
    /// The names that a library of this source exports.
    private(set) var exports: [String] = []

    init(tokens: [Token]) {
        source = SourceText(tokens: tokens)
        checkTokens()
        checkLiterals()
        checkAttributes()
        checkCalls()
        checkComparisons()
        checkRecursion()
        checkKernelCalls()
        checkLocals()
        checkTypes()
        checkPointers()
        checkKernels()
        exports = checkExports()
    }

    mutating func report(_ index: Int, _ message: String) {
        guard source.tokens.indices.contains(index) else { return }
        let token = source.tokens[index]
        findings.append(Finding(.lint, file: token.file, line: token.line, message))
    }
}
