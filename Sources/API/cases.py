"""What tests take from the description: all fields of each type, and a case for each field in each language."""

import dataclasses
import re

import objc
import swift
from c import ordered, singular
from cxx import number
from model import Enum, Struct, Union


def structs(api, language):
    return ordered([one for one in api.in_language(language) if isinstance(one, Struct)])


def fields(api):
    """Lists of fields for the fuzzer, which changes each."""
    text = ""
    for one in structs(api, "cxx"):
        if not isinstance(one, Union):
            text += f"FIELDS({one.cxx}, {', '.join(field.name for field in one.fields_in('cxx'))})\n"
        names = []
        for field in one.fields_in("c"):
            names += [f"has_{field.c}"] if field.has_flag else []
            names += [field.c]
            names += [f"{singular(field.c)}_count"] if field.is_list else []
        text += f"FIELDS({one.c}, {', '.join(names)})\n"
    return text


def other_case(field):
    return next(case for case in reversed(field.type.cases) if case != field.default)


def changed_one(one):
    return f"changed{one.word}(tensor, other)"


def changed(field):
    """A statement that gives a field another value than its default."""
    at = f"core.{field.name}"
    if field.is_tensor:
        return f"{at} = other;"
    if field.is_list and field.is_struct:
        return f"{at} = {{{changed_one(field.type)}}};"
    if field.is_struct:
        return f"{at} = {changed_one(field.type)};"
    if field.is_enum:
        return f"{at} = {field.type.cxx}::{other_case(field)};"
    if field.base == "text":
        return f'{at} = "other";'
    if field.is_list:
        return f"{at} = {{0.5f, 3}};"
    if field.length:
        return f"std::iota({at}.begin(), {at}.end(), 1);"
    if field.base == "bool":
        return f"{at} = {number(not field.default)};"
    position = field.owner.fields.index(field)
    return f"{at} = {7 + position}{'.5' if field.base in ('f32', 'f64') else ''};"


# Of types that are written by hand.
FOREIGN = """
inline bool same(const RotaryPositions& a, const RotaryPositions& b);
inline bool same(const RotaryPositions::List& a, const RotaryPositions::List& b) {
  return a.numbers == b.numbers && a.axes == b.axes;
}
inline bool same(const std::shared_ptr<const PositionSource>& a, const std::shared_ptr<const PositionSource>& b) {
  return a == b;
}
template <typename... Ts>
bool same(const std::variant<Ts...>& a, const std::variant<Ts...>& b) {
  return a.index() == b.index() && std::visit([&](const auto& held) {
    return same(held, std::get<std::remove_cvref_t<decltype(held)>>(b));
  }, a);
}
inline bool same(const RotaryPositions& a, const RotaryPositions& b) {
  return same(a.source, b.source);
}
inline RowIndices changedRowIndices(const Tensor&, const Tensor& other) {
  return other;
}
inline RotaryOffsets changedRotaryOffsets(const Tensor&, const Tensor&) {
  return std::vector<int32_t>{3, 5};
}
inline RotaryPositions changedRotaryPositions(const Tensor&, const Tensor&) {
  return {std::vector<int32_t>{1, 2, 3, 4}, 2};
}

"""


def equality(field):
    a, b = f"a.{field.name}", f"b.{field.name}"
    if field.optional and field.base != "text" and not field.keys.get("empty"):
        return f"{a}.has_value() == {b}.has_value() && (!{a} || same(*{a}, *{b}))"
    return f"same({a}, {b})"


def wrong(field):
    """Errors of a field in C, and the statements that make them of a field that is filled in."""
    at = f"c.{field.c}"
    if field.is_enum:
        yield f"the number is not a case of {field.type.c}", f"{at} = static_cast<{field.type.c}>(99);"
    if field.has_flag:
        yield f"{field.c} would be ignored", f"c.has_{field.c} = false;"
    if field.is_list:
        count = f"c.{singular(field.c)}_count"
        yield f"{field.c} is missing", f"{at} = nullptr;"
        yield f"{field.c} would be ignored", f"{count} = 0;"
        yield "there are too many", f"{count} = SIZE_MAX;"
    if field.required and not field.is_foreign:
        yield "is missing", f"{at} = {{}};"


def core_cases(api):
    """For C++, C and Objective-C."""
    text = ("// Each struct of the API with one field after another changed, and whether two have the same fields.\n"
            '#pragma once\n#include <numeric>\n#include <string_view>\n\n#include "CAPI/Generated/Read.hpp"\n'
            '#include "CAPI/Generated/Write.hpp"\n\n'
            "namespace mnk::test {\n\n"
            "inline bool same(const Tensor& a, const Tensor& b) {\nreturn a.buffer() == b.buffer();\n}\n"
            "template <typename T>\nbool same(const T& a, const T& b) requires(std::is_arithmetic_v<T> || "
            "std::is_enum_v<T>) {\nreturn a == b;\n}\n"
            "inline bool same(const std::string& a, const std::string& b) {\nreturn a == b;\n}\n"
            "template <typename T, size_t size>\nbool same(const std::array<T, size>& a, const std::array<T, size>& b) "
            "{\nreturn a == b;\n}\n"
            "template <typename T>\nbool same(const std::vector<T>& a, const std::vector<T>& b) {\nreturn a == b;\n}\n"
            "\n")
    text += "".join(f"inline bool same(const {one.cxx}& a, const {one.cxx}& b);\n" for one in structs(api, "cxx")
                    if not isinstance(one, Union))
    text += FOREIGN
    for one in structs(api, "cxx"):
        if isinstance(one, Union):
            continue
        equal = " && ".join(equality(field) for field in one.fields_in("c"))
        text += f"inline bool same(const {one.cxx}& a, const {one.cxx}& b) {{\nreturn {equal};\n}}\n"
    for one in structs(api, "cxx"):
        text += makers(one)
    each, zeros, wrongs = "", "", ""
    for one in structs(api, "cxx"):
        isUnion = isinstance(one, Union)
        for field in one.fields_in("c"):
            name = f'"{one.name}.{field.name}"'
            if isUnion:
                each += block(f"const {one.cxx} core = {changed_one(field.type)};", f"body({name}, core);")
                continue
            core = f"{one.cxx} core = plain{one.word}(tensor);"
            write = f"{one.c} c = c::write(core, handleOf);"
            each += block(core, changed(field), f"body({name}, core);")
            if not field.required and objc.is_zero_in_c(field):
                at = f"c.{field.c}"
                clear = f"std::fill(std::begin({at}), std::end({at}), 0);" if field.length else f"{at} = {{}};"
                zeros += block(f"const {core}", write, clear, f"body({name}, core, c);")
            for error, change in wrong(field):
                fill = [changed(field)] if field.has_flag or field.is_list else []
                wrongs += block(core, *fill, write, change, f'body({name}, "{error}", core, c);')
    return text + f"""
// Calls body(name, core) with each field of each struct changed.
template <typename Body>
void forEachField(const Tensor& tensor, const Tensor& other, Body&& body) {{
{each}}}

// Calls body(name, core, c) for each field that may be zero in C: where zero is its default, or
// stands for it. `handleOf` gives the handle of a tensor.
template <typename Handles, typename Body>
void forEachZero(const Tensor& tensor, Handles&& handleOf, Body&& body) {{
{zeros}}}

// Calls body(name, error, core, c) for each field that can be wrong in C alone.
template <typename Handles, typename Body>
void forEachWrong(const Tensor& tensor, const Tensor& other, Handles&& handleOf, Body&& body) {{
{wrongs}}}

}}  // namespace mnk::test
"""


def block(*lines):
    return "{\n" + "\n".join(lines) + "\n}\n"


def makers(one):
    """Functions that make one with all that it needs, and one with all fields changed."""
    needed = [field for field in one.fields if field.required]
    if isinstance(one, Union):
        plain, changes = f"return plain{one.fields[0].type.word}(tensor);", f"return {changed_one(one.fields[-1].type)};"
    else:
        values = {field: "tensor" if field.is_tensor else f"plain{field.type.word}(tensor)" for field in needed}
        plain = f"{one.cxx} core;\n" + "".join(f"core.{field.name} = {value};\n" for field, value in values.items())
        plain += "return core;"
        changes = f"{one.cxx} core = plain{one.word}(tensor);\n"
        changes += "".join(changed(field) for field in one.fields_in("c"))
        changes += "\nstatic_cast<void>(other);\nreturn core;"
    return (f"inline {one.cxx} plain{one.word}(const Tensor&{' tensor' if needed else ''}) {{\n{plain}\n}}\n"
            f"inline {one.cxx} changed{one.word}(const Tensor& tensor, const Tensor& other) {{\n{changes}\n}}\n")


def literal(field, value):
    if isinstance(value, str):
        return field.type.c_case(value)
    if isinstance(value, bool):
        return str(int(value))
    return {"nan": "NAN", "inf": "INFINITY"}.get(str(value), repr(value))


def numbers(one):
    """Valid and invalid numbers of a struct's fields, for the tests of its rules and all cases that draw from them."""
    text = ""
    for field in one.fields:
        if "valid" in field.keys:
            lists = [", ".join(literal(field, value) for value in field.keys.get(key, [])) for key in ("valid", "invalid")]
            text += f'numberOption<&{one.cxx}::{field.name}>("{field.objc}", {{{lists[0]}}}, {{{lists[1]}}}),\n'
    return text


def ops(api):
    """The list of all ops, with their functions of C."""
    every = [one for topic in api.topics for one in topic.types if getattr(one, "op", None) is not None]
    text = "// Every op, and its functions of C.\n#pragma once\n#include <tuple>\n#include <utility>\n#include <variant>\n\n"
    text += '#include "MLXNativeKernels/MLXNativeKernels.hpp"\n#include "MLXNativeKernels/mnk.h"\n\nnamespace mnk::test {\n\n'
    text += f"using AnyOp = std::variant<{', '.join(one.cxx for one in every)}>;\n\n// In the order of AnyOp.\n"
    functions = ", ".join(f"std::make_pair({one.c}_make_plan, {one.c.replace('mnk_', 'mnk_encoder_', 1)})" for one in every)
    return text + f"inline constexpr std::tuple kCFunctions{{{functions}}};\n\n}}  // namespace mnk::test\n"


def objects(api):
    """Objects of Objective-C with the values of the core's structs."""
    classes = structs(api, "objc")
    declared = '#pragma once\n#import "../Support/Bridging.hpp"\n\nNS_ASSUME_NONNULL_BEGIN\n\n'
    declared += "namespace mnk::objc_test {\n\n"
    for one in classes:
        type = f"id<{one.objc}> " if isinstance(one, Union) else f"{one.objc} *"
        declared += f"{type}objectFor(const {one.cxx} &core);\n"
    defined = '#include "CAPI/Generated/Write.hpp"\n#import "Objects.hpp"\n\nnamespace mnk::objc_test {\n\n'
    defined += "".join(objc.from_core(one, "objectFor", "objectOver") for one in classes)
    yield "Objects.hpp", declared + "\n}  // namespace mnk::objc_test\n\nNS_ASSUME_NONNULL_END\n"
    yield "Objects.mm", defined + "}  // namespace mnk::objc_test\n"


def swift_value(field, base):
    """A value in Swift, and the conditions that its field of C holds it. Numbers count from `base`."""
    at = f"c.{field.c}"
    isOther = base != PLAIN
    if "case" in field.swift:
        expected = field.swift["is"]
        return field.swift["case"], [f"{at}{expected}" if expected.startswith(".") else f"{at} == {expected}"]
    if field.is_list and field.is_struct:
        one = dataclasses.replace(field, keys={**field.keys, "type": field.base}).resolve()
        value, conditions = swift_value(one, base)
        return f"[{value}]", [one.replace(at, f"{at}![0]") for one in conditions]
    if field.base == "text":
        return '"name"', [f'{at}.map {{ String(cString: $0) }} == "name"']
    if field.is_foreign:
        name = "other" if isOther else "tensor"
        return f".tensor({name})", [f"{at}.tensor == {name}.handle.pointer"]
    if field.is_union:
        inner = field.type.fields[-1 if isOther else 0]
        value, conditions = swift_value(inner, base)
        return f".{inner.swift_name}({value})", [one.replace("c.", f"{at}.", 1) for one in conditions]
    if field.is_tensor:
        name = "other" if isOther else "tensor"
        return name, [f"{at} == {name}.handle.pointer"]
    if field.is_struct:
        plain = field.type.keys["swift"].get("plain")
        values = {inner: swift_value(inner, base) for inner in field.type.fields_in("swift")
                  if not plain or f"{{{inner.name}}}" in plain}
        conditions = [one.replace("c.", f"{at}.", 1) for _, ones in values.values() for one in ones]
        return swift_call(field.type, {inner: value for inner, (value, _) in values.items()}), conditions
    if field.is_enum:
        return f".{other_case(field)}", [f"{at} == .{field.type.c_case(other_case(field))}"]
    if field.base == "bool":
        value = not field.default
        return str(value).lower(), [f"{at} == {str(value != field.inverse).lower()}"]
    number = base + field.owner.fields.index(field)
    value = f"{number}.5" if field.base in ("f32", "f64") else f"{number}"
    return value, [f"{at} == {value}"]


PLAIN, OTHER = 11, 71


def swift_call(one, values):
    """A call of an initializer, with all that has no default."""
    if "plain" in one.keys["swift"]:
        return one.keys["swift"]["plain"].format(**{field.name: value for field, value in values.items()})
    parts = []
    for field in one.fields_in("swift"):
        if field not in values and (swift.default(field) or field.swift.get("flat")):
            continue
        value = values[field] if field in values else swift_value(field, PLAIN)[0]
        parts.append(value if field.swift.get("label") == "_" else f"{field.swift.get('label', field.swift_name)}: {value}")
    return f"{one.swift}({', '.join(parts)})"


def swift_cases(api):
    text = "import XCTest\n\n@testable import MLXNativeKernels\n"
    text += "#if SWIFT_PACKAGE\nimport MLXNativeKernelsCore\n#endif\n\n"
    text += "/// Each field of each struct reaches its field of C, and no other.\n"
    text += "final class FieldTests: XCTestCase {\n"
    for one in structs(api, "swift"):
        if isinstance(one, Union):
            continue
        fields = one.fields_in("swift")
        needed = {field: swift_value(field, PLAIN) for field in fields
                  if not swift.default(field) and not field.swift.get("flat")
                  and f"{{{field.name}}}" in one.keys["swift"].get("plain", f"{{{field.name}}}")}
        memory = ", in: memory" if "memory" in swift.signature(one) else ""
        call = f'try one.descriptor(op: "test"{memory})' if "func" in swift.signature(one) else "one.descriptor"
        made = swift_call(one, {field: value for field, (value, _) in needed.items()})
        body = ""
        for field in fields:
            inners = field.type.fields if field.swift.get("flat") else [field]
            for inner in inners:
                value, conditions = swift_value(inner, OTHER)
                if inner is not field:
                    conditions = [text.replace("c.", f"c.{field.c}.", 1) for text in conditions]
                conditions += [f"c.has_{field.c}"] if field.has_flag else []
                conditions += [text for other, (_, ones) in needed.items() if other is not field for text in ones]
                body += f"do {{\nvar one = {made}\none.{inner.swift_name} = {value}\nlet c = {call}\n"
                body += "".join(f'XCTAssertTrue({condition}, "{inner.swift_name}")\n' for condition in conditions) + "}\n"
        text += f"func test{one.word}() throws {{\n"
        if memory:
            text += "let memory = CallMemory()\n"
        for name in ("tensor", "other"):
            if re.search(rf"(?<![.\w\"]){name}\b", body):
                text += f"let {name} = try Tensor.zeros(shape: [1], on: .default())\n"
        text += body + ("withExtendedLifetime(memory) {}\n" if memory else "") + "}\n\n"
    return text + "}\n"


def outputs(api):
    yield "Tests/Fuzz/Generated/Fields.inc", fields(api)
    yield "Tests/Core/CAPI/Generated/FieldCases.hpp", core_cases(api)
    yield "Tests/Core/CAPI/Generated/Ops.hpp", ops(api)
    yield "Tests/Core/Ops/FlashDecode/Generated/NumberOptions.inc", numbers(api.types["AttentionOptions"])
    for name, text in objects(api):
        yield f"Tests/MLXNativeKernelsObjCTests/Generated/{name}", text
    yield "Tests/MLXNativeKernelsTests/Generated/FieldTests.swift", swift_cases(api)
