/// Rules of the Metal compiler, and of this house, that the strict compile does not see. They work on the tokens of the
/// preprocessed text, where a Mac's branch of every header was taken; the words of Shaders/Common/MetalCompat.h stay as written.
struct Lint {
    let source: SourceText
    private(set) var findings: [Finding] = []
    /// Names that a library made of this text offers.
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
