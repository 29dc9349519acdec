"""Rules of the Metal compiler and of this package that the strict compile does not check. They use the tokens of the
source, preprocessed as on a Mac, except that macros of Shaders/Common/MetalCompat.h are not expanded."""
import re

from source import PAIRS, STANDALONE, Source

# Kernel source that is compiled at run time uses fast math, which may fold these to constants.
CLASSIFIERS = set("isnan isinf isfinite isnormal isordered isunordered signbit".split())
# Functions whose precise and fast variants differ: without a namespace, compiler flags choose.
TWO_VARIANTS = set("""
    acos acosh asin asinh atan atan2 atanh cos cosh cospi exp exp10 exp2 fmod log log10 log2 pow powr rsqrt sin sincos
    sinh sinpi sqrt tan tanh tanpi
""".split())
# C++ keywords that Metal lacks and the strict compile accepts.
FOREIGN_WORDS = {"goto", "asm", "noexcept"}
# Names that Metal reserves. Those that kernels use as intended are macros in the strict compile, which fails if one of
# them names something else.
RESERVED_WORDS = set("vertex fragment threadgroup_imageblock ray_data object_data sampler main std".split())
# Built-in values that may have several dimensions, and those that have one.
POSITIONS = set("""
    thread_position_in_grid thread_position_in_threadgroup threadgroup_position_in_grid threads_per_threadgroup
    dispatch_threads_per_threadgroup threadgroups_per_grid threads_per_grid
""".split())
COUNTS = set("""
    thread_index_in_threadgroup thread_index_in_simdgroup thread_index_in_quadgroup simdgroup_index_in_threadgroup
    quadgroup_index_in_threadgroup simdgroups_per_threadgroup quadgroups_per_threadgroup
    dispatch_simdgroups_per_threadgroup threads_per_simdgroup thread_execution_width
""".split())
# The Metal attributes that kernels use. Most C++ attributes need C++17, and the others do not help a kernel.
ATTRIBUTES = POSITIONS | COUNTS | set(
    "buffer threadgroup_memory function_constant max_total_threads_per_threadgroup".split())
SPACES = {"device", "constant", "threadgroup", "thread"}
SCALARS = set("""
    void bool char uchar short ushort int uint long ulong float half bfloat size_t int8_t uint8_t int16_t uint16_t
    int32_t uint32_t int64_t uint64_t atomic_uint atomic_int atomic_float
""".split())
BUILT_IN_TYPES = SCALARS | {f"{type}{count}" for type in SCALARS for count in (2, 3, 4)}
COMPARISONS = {"==", "!=", "<=", ">="}
# Tokens that end an operand of a comparison, outside brackets.
OPERAND_ENDS = COMPARISONS | set("; , = ? : && || & | ^ return += -= *= /= %= &= |= ^= { }".split())


class Lint:
    def __init__(self, tokens):
        self.source = Source(tokens)
        self.text = self.source.text
        self.exports = []  # the names that a library of this source exports
        rules = (
            self.words, self.attributes, self.calls, self.comparisons, self.recursion, self.locals, self.types,
            self.pointers, self.kernels, self.exported,
        )
        self.findings = [
            (tokens[index].file, tokens[index].line, message) for rule in rules for index, message in rule()
        ]

    def words(self):
        for index, token in enumerate(self.source.tokens):
            text = token.text
            if token.kind == "number":
                number = text.lower()
                is_floating = "." in number or ("p" if number.startswith("0x") else "e") in number
                if is_floating and not number.endswith(("f", "h")):
                    yield index, f"{text} is a floating literal without f or h"
            if token.kind != "word":
                continue
            if text in FOREIGN_WORDS:
                yield index, f"{text} is not a word of Metal"
            if text in RESERVED_WORDS:
                yield index, f"{text} is a reserved name of Metal: choose another"
            if text == "long" and self.text(index + 1) == "long":
                yield index, "long long is not a type of Metal: write long, which has 64 bits"
            if re.match("__|_[A-Z]", text):
                yield index, f"{text} is an internal name of a compiler"

    def attributes(self):
        for index, text in enumerate(self.source.all):
            if text == "[" and self.text(index + 1) == "[":
                for part in self.source.parts(self.source.inside(index + 1)):
                    name = "".join(self.source.words(part)).partition("(")[0]
                    if name not in ATTRIBUTES:
                        yield part.start, f"attribute {name} is not one of those that Metal 3.1 gives kernels"

    def calls(self):
        for index, token in enumerate(self.source.tokens):
            name, before = token.text, self.text(index - 1)
            if token.kind != "word" or self.text(index + 1) != "(":
                continue
            if name in CLASSIFIERS:
                yield index, f"{name} may be folded by fast math: compare the bits, as_type<uint>(x)"
            is_chosen = before == "." or before == "::" and self.text(index - 2) in ("precise", "fast")
            if name in TWO_VARIANTS and not is_chosen:
                yield index, f"{name} depends on the compiler's flags: write precise::{name} or fast::{name}"

    def comparisons(self):
        """`x != x` is equivalent to isnan, and fast math may fold it."""
        for index, sign in enumerate(self.source.all):
            if sign in COMPARISONS:
                before, after = (self.operand(index, step) for step in (-1, 1))
                if before and before == after:
                    operand = "".join(before)
                    folded = f"{operand} {sign} {operand}"
                    yield index, f"{folded} may be folded by fast math: compare the bits, as_type<uint>(x)"

    def operand(self, index, step):
        """The tokens from a comparison on, without brackets around them."""
        opening, closing = (set(PAIRS), set(PAIRS.values()))[::step]
        words, depth = [], 0
        while True:
            index += step
            text = self.text(index)
            if not text or depth == 0 and (text in OPERAND_ENDS or text in closing):
                break
            depth += (text in opening) - (text in closing)
            words.append(text)
        words = words[::step]
        while words[:1] == ["("] and self.closes_last(words):
            words = words[1:-1]
        return words

    @staticmethod
    def closes_last(words):
        depth = 0
        for index, word in enumerate(words):
            depth += (word == "(") - (word == ")")
            if depth == 0:
                return index == len(words) - 1
        return False

    def argument_list(self, index):
        """The opening bracket of a call's arguments after a name, as in `f(` or `f<half, 4>(`."""
        if self.text(index + 1) == "<":
            angles = 0
            for index in range(index + 1, index + 40):
                angles += (self.text(index) == "<") - (self.text(index) == ">")
                if angles == 0 or self.text(index) in ("", ";", "{", "}"):
                    break
        return index + 1 if self.text(index + 1) == "(" else None

    def callees(self, function):
        """Calls in a function's body, which are identified by name and number of arguments."""
        for index in function.body:
            if self.source.tokens[index].kind == "word":
                open = self.argument_list(index)
                if open is not None:
                    yield index, (self.text(index), len(self.source.parts(self.source.inside(open))))

    def recursion(self):
        functions = {}
        for function in self.source.functions:
            functions.setdefault((function.name, len(function.parameters)), []).append(function)
        kernels = {key for key, all in functions.items() if any(function.is_kernel for function in all)}
        calls = {}
        for key, all in functions.items():
            found = [call for function in all for call in self.callees(function)]
            calls[key] = {callee for _, callee in found} & functions.keys()
            for index, callee in found:
                # A function that calls itself is reported as recursive.
                if callee in kernels and callee != key:
                    yield index, f"call of kernel {callee[0]}: a kernel is only dispatched; let both call a function"
        for key, all in functions.items():
            reached, waiting = set(), [key]
            while waiting:
                new = calls[waiting.pop()] - reached
                reached |= new
                waiting += new
            for function in all if key in reached else []:
                yield function.at, f"{function.name} is recursive"

    def locals(self):
        for function in self.source.functions:
            for index in function.body:
                text = self.text(index)
                if text == "static":
                    yield index, "static variable in a function: Metal has no storage that outlives a thread"
                elif text == "[" and self.is_lambda(index):
                    yield index, "lambda expression: Metal has them since 3.2 only"
                elif text == "threadgroup_array" and not function.is_kernel:
                    yield index, "threadgroup variable outside a kernel: give the function a threadgroup pointer"

    def is_lambda(self, index):
        before = self.source.tokens[index - 1]
        is_subscript = before.kind == "word" and before.text != "return" or before.text in (")", "]", "[")
        return not is_subscript and self.text(index + 1) != "["

    def types(self):
        for index in self.source.derived:
            yield index, "derived class: Metal's specification has none"
        for function in self.source.functions:
            if function.is_member:
                yield function.at, (
                    f"member function {function.name}: Metal calls it for objects in thread memory alone; write a "
                    "function")

    def pointers(self):
        """A pointer or reference must name the address space of its target; clang would accept any."""
        types = BUILT_IN_TYPES | self.source.types
        for index, text in enumerate(self.source.all):
            if text not in ("*", "&"):
                continue
            start, angles = index, 0
            while start > 0:
                before = self.text(start - 1)
                angles += (before == ">") - (before == "<")
                if angles < 0 or angles == 0 and before in (";", "{", "}", "(", ",", "=", ")", "return"):
                    break
                start -= 1
            head = self.source.all[start:index]
            last = next((word for word in reversed(head) if word != "const"), None)
            # `vec < half , 4 >`, and not `a > `.
            template = head[head.index("<") - 1] if "<" in head[1:] else None
            is_type = last in types or last == ">" and template in types | {"vec", "atomic"}
            if is_type and not SPACES & set(head):
                yield index, f"pointer or reference without an address space: {' '.join(head)}{text}"

    def kernels(self):
        for kernel in self.source.functions:
            if not kernel.is_kernel:
                continue
            if self.text(kernel.at - 1) != "void":
                yield kernel.at, f"kernel {kernel.name} returns something other than void"
            bound = set()
            for parameter in kernel.parameters:
                for index, message in self.parameter(parameter, bound):
                    yield index, f"{kernel.name}: {message}"

    def parameter(self, parameter, bound):
        words = self.source.words(parameter)
        open = next((i for i in parameter if self.text(i) == "[" and self.text(i + 1) == "["), None)
        if open is None:
            yield parameter.start, f"parameter without an attribute: {' '.join(words)}"
            return
        declared = words[:open - parameter.start]
        for part in self.source.parts(self.source.inside(open + 1)):
            attribute, whole = self.text(part.start), "".join(self.source.words(part))
            if attribute in ("buffer", "threadgroup_memory"):
                if whole in bound:
                    yield part.start, f"{whole} is bound twice"
                bound.add(whole)
            is_pointer = {"*", "&"} & set(declared) and {"device", "constant"} & set(declared)
            if attribute == "buffer" and not is_pointer:
                yield parameter.start, "a buffer is a device or constant pointer, or a reference"
            counts = ("", "2", "3") if attribute in POSITIONS else ("",) if attribute in COUNTS else ()
            allowed = [type + count for type in ("uint", "ushort") for count in counts]
            if allowed and (len(declared) != 2 or declared[0] not in allowed):
                got = " ".join(declared[:-1])
                yield parameter.start, f"{attribute} as {got}, expected {', '.join(allowed)}"

    def exported(self):
        kernels = {function.name for function in self.source.functions if function.is_kernel}
        exported = set()
        for statement in self.source.statements:
            macro, first = self.text(statement.start), statement.start
            arguments = self.source.parts(self.source.inside(first + 1)) if macro in STANDALONE else []
            is_template = macro == "instantiate_kernel"
            if len(arguments) < (3 if is_template else 1):
                continue
            name = function = self.text(arguments[0].start)
            if is_template:
                name = "".join(word[1:-1] for word in self.source.words(arguments[0]))
                function = self.text(arguments[1].start)
            if name in self.exports:
                yield first, f"{name} is exported twice"
            if function not in kernels:
                yield first, f"{name} is exported, but {function} is not a kernel of this text"
            self.exports.append(name)
            exported.add(function)
        for function in self.source.functions:
            if function.is_kernel and function.name not in exported:
                yield function.at, f"kernel {function.name} is not exported: write export_kernel or instantiate_kernel"
