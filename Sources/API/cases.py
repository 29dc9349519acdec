"""What tests take from the description: all fields of each type, and a case for each field in each language."""

import re

import objc
import swift
from c import ordered, singular
from cxx import number
from model import Enum, Struct


def structs(api, language):
    return ordered([one for topic in api.topics for one in topic.in_language(language) if isinstance(one, Struct)])


def fields(api):
    """Lists of fields for the fuzzer, which changes each."""
    text = ""
    for one in structs(api, "cxx"):
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


def changed(field):
    """A statement that gives a field another value than its default."""
    at = f"core.{field.name}"
    if field.is_tensor:
        return f"{at} = other;"
    if field.is_struct:
        return f"{at} = changed{field.type.name.replace('.', '')}(tensor, other);"
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


def equality(field):
    a, b = f"a.{field.name}", f"b.{field.name}"
    if field.optional and field.base != "text" and not field.keys.get("empty"):
        return f"{a}.has_value() == {b}.has_value() && (!{a} || same(*{a}, *{b}))"
    return f"same({a}, {b})"


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
    for one in structs(api, "cxx"):
        equal = " && ".join(equality(field) for field in one.fields_in("c"))
        text += f"inline bool same(const {one.cxx}& a, const {one.cxx}& b) {{\nreturn {equal};\n}}\n"
    text += "\n"
    for one in structs(api, "cxx"):
        needed = [field for field in one.fields if field.required]
        word = one.name.replace(".", "")
        text += f"inline {one.cxx} plain{word}(const Tensor&{' tensor' if needed else ''}) {{\n{one.cxx} core;\n"
        for field in needed:
            value = "tensor" if field.is_tensor else f"plain{field.type.name.replace('.', '')}(tensor)"
            text += f"core.{field.name} = {value};\n"
        text += "return core;\n}\n"
        text += (f"inline {one.cxx} changed{word}(const Tensor& tensor, const Tensor& other) {{\n"
                 f"{one.cxx} core = plain{word}(tensor);\n{''.join(changed(field) for field in one.fields_in('c'))}\n"
                 "static_cast<void>(other);\nreturn core;\n}\n")
    text += ("\n// Calls body(name, core) with each field of each struct changed.\ntemplate <typename Body>\n"
             "void forEachField(const Tensor& tensor, const Tensor& other, Body&& body) {\n")
    for one in structs(api, "cxx"):
        word = one.name.replace(".", "")
        for field in one.fields_in("c"):
            text += (f"{{\n{one.cxx} core = plain{word}(tensor);\n{changed(field)}\n"
                     f'body("{one.name}.{field.name}", core);\n}}\n')
    text += ("}\n\n// Calls body(name, core, c) for each field that may be zero in C: where zero is its default, or\n"
             "// stands for it. `handleOf` gives the handle of a tensor.\ntemplate <typename Handles, typename Body>\n"
             "void forEachZero(const Tensor& tensor, Handles&& handleOf, Body&& body) {\n")
    for one in structs(api, "cxx"):
        word = one.name.replace(".", "")
        for field in one.fields_in("c"):
            if field.required or not objc.is_zero_in_c(field):
                continue
            at = f"c.{field.c}"
            clear = f"std::fill(std::begin({at}), std::end({at}), 0);" if field.length else f"{at} = {{}};"
            text += (f"{{\nconst {one.cxx} core = plain{word}(tensor);\n{one.c} c = c::write(core, handleOf);\n"
                     f'{clear}\nbody("{one.name}.{field.name}", core, c);\n}}\n')
    return text + "}\n\n}  // namespace mnk::test\n"


def objects(api):
    """Objects of Objective-C with the values of the core's structs."""
    classes = structs(api, "objc")
    declared = '#pragma once\n#import "../Support/Bridging.hpp"\n\nNS_ASSUME_NONNULL_BEGIN\n\n'
    declared += "namespace mnk::objc_test {\n\n"
    declared += "".join(f"{one.objc} *objectFor(const {one.cxx} &core);\n" for one in classes)
    defined = '#include "CAPI/Generated/Write.hpp"\n#import "Objects.hpp"\n\nnamespace mnk::objc_test {\n\n'
    defined += "".join(objc.from_core(one, "objectFor", "objectOver") for one in classes)
    yield "Objects.hpp", declared + "\n}  // namespace mnk::objc_test\n\nNS_ASSUME_NONNULL_END\n"
    yield "Objects.mm", defined + "}  // namespace mnk::objc_test\n"


def swift_value(field, base):
    """A value in Swift, and the conditions that its field of C holds it. Numbers count from `base`."""
    at = f"c.{field.c}"
    isOther = base != PLAIN
    if "case" in field.swift:
        return field.swift["case"], [f"{at} == {field.swift['is']}"]
    if field.is_tensor:
        name = "other" if isOther else "tensor"
        return name, [f"{at} == {name}.handle.pointer"]
    if field.is_struct:
        values = {inner: swift_value(inner, base) for inner in field.type.fields_in("swift")}
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
        if field not in values and swift.default(field):
            continue
        value = values[field] if field in values else swift_value(field, PLAIN)[0]
        parts.append(value if field.swift.get("label") == "_" else f"{field.name}: {value}")
    return f"{one.name}({', '.join(parts)})"


def swift_cases(api):
    text = "import XCTest\n\n@testable import MLXNativeKernels\n"
    text += "#if SWIFT_PACKAGE\nimport MLXNativeKernelsCore\n#endif\n\n"
    text += "/// Each field of each struct reaches its field of C, and no other.\n"
    text += "final class FieldTests: XCTestCase {\n"
    for one in structs(api, "swift"):
        if not one.keys["swift"].get("descriptor", True):
            continue
        fields = one.fields_in("swift")
        needed = {field: swift_value(field, PLAIN) for field in fields if not swift.default(field)}
        call = 'try one.descriptor(op: "test")' if swift.can_throw(one) else "one.descriptor"
        made = swift_call(one, {field: value for field, (value, _) in needed.items()})
        body = ""
        for field in fields:
            value, conditions = swift_value(field, OTHER)
            conditions += [f"c.has_{field.c}"] if field.has_flag else []
            conditions += [text for other, (_, ones) in needed.items() if other is not field for text in ones]
            body += f"do {{\nvar one = {made}\none.{field.name} = {value}\nlet c = {call}\n"
            body += "".join(f'XCTAssertTrue({condition}, "{field.name}")\n' for condition in conditions) + "}\n"
        text += f"func test{one.name.replace('.', '')}() throws {{\n"
        for name in ("tensor", "other"):
            if re.search(rf"\b{name}\b", body):
                text += f"let {name} = try Tensor.zeros(shape: [1], on: .default())\n"
        text += body + "}\n\n"
    return text + "}\n"


def outputs(api):
    yield "Tests/Fuzz/Generated/Fields.inc", fields(api)
    yield "Tests/Core/CAPI/Generated/FieldCases.hpp", core_cases(api)
    for name, text in objects(api):
        yield f"Tests/MLXNativeKernelsObjCTests/Generated/{name}", text
    yield "Tests/MLXNativeKernelsTests/Generated/FieldTests.swift", swift_cases(api)
