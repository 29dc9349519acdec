"""C++ headers: enums and structs with their defaults."""

from model import NUMBERS, Enum, Union, comment, documented


def value_type(field):
    if field.base in NUMBERS:
        return NUMBERS[field.base][0]
    if field.is_tensor:
        return "Tensor"
    if field.base == "text":
        return "std::string"
    return field.type.short if field.type.outer == field.owner.name else field.type.cxx


def field_type(field):
    base = value_type(field)
    if field.is_list:
        return f"std::vector<{base}>"
    if field.length:
        return f"std::array<{base}, {field.length}>"
    isPlain = field.base == "text" or field.keys.get("empty")
    return f"std::optional<{base}>" if field.optional and not isPlain else base


def number(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return "kOnlySequence" if value == "only" else f"{value:.9g}"


def initializer(field):
    if field.is_enum and not field.optional:
        return f" = {value_type(field)}::{field.default}"
    if isinstance(field.default, str) and field.base == "text":
        return f' = "{field.default}"'
    if field.default is not None:
        return f" = {number(field.default)}"
    if field.base == "text" or field.keys.get("empty"):
        return ""
    if field.optional or field.is_list or field.length or field.is_struct and not field.required:
        return " = {}"
    return "" if field.required or field.is_tensor else f" = {'false' if field.base == 'bool' else 0}"


def enum(one, indent):
    lines = documented("cxx", one.doc, one, indent=indent)
    lines += f"enum class {one.short} : uint32_t {{\n"
    gap = one.numbers != {case: index for index, case in enumerate(one.cases)}
    for case, doc in one.cases.items():
        lines += documented("cxx", doc, one, indent=indent + 2)
        lines += case + (f" = {one.numbers[case]}" if gap else "") + ",\n"
    return lines + "};\n\n" + (name_function(one) if "unknown" in one.keys else "")


def name_function(one):
    text = f"constexpr std::string_view name({one.cxx} one) {{\nswitch (one) {{\n"
    text += "".join(f'case {one.cxx}::{case}: return "{name}";\n' for case, name in one.names.items())
    return text + f'}}\nreturn "{one.keys["unknown"]}";\n}}\n\n'


def union(one, indent):
    text = documented("cxx", one.doc, one, indent=indent)
    return text + f"using {one.short} = std::variant<{', '.join(field.type.cxx for field in one.fields)}>;\n\n"


def type_definition(one, indent=0):
    define = enum if isinstance(one, Enum) else union if isinstance(one, Union) else struct
    return define(one, indent)


def op_functions(one):
    text = f"// Checks every rule and returns what to run. {'Runs and compiles nothing' if one.op.get('device') else 'Needs no device'}.\n"
    if one.op.get("device"):
        text += (f"// By default, on an unknown GPU.\nResult<Plan> plan(const {one.cxx}& op, const DeviceProfile& profile = {{}});\n"
                 "// For the profile of a device, which is probed first if the plan depends on what a probe finds out.\n"
                 f"Result<Plan> plan(const {one.cxx}& op, Device& device);\n")
    else:
        text += f"Result<Plan> plan(const {one.cxx}& op);\n"
    if one.op.get("repeated"):
        text += f"Result<void> encodeRepeated(CommandEncoder& encoder, const {one.cxx}& op);\n"
    return text + "\n"


def struct(one, indent=0):
    more = f"\n\n{one.more['cxx']}" if one.more["cxx"] else ""
    text = documented("cxx", one.doc.rstrip() + more, one, indent=indent)
    text += f"struct {one.short} {{\n"
    if one.op is not None:
        text += f'static constexpr std::string_view name = "{one.name}";\n'
        text += one.keys["cxx"] + "\n" if "cxx" in one.keys else ""
    for inner in one.api.nested(one, "cxx"):
        text += type_definition(inner, indent + 2)
    for field in one.fields_in("cxx"):
        text += documented("cxx", field.doc, one, field, indent=indent + 2)
        text += f"{field_type(field)} {field.name}{initializer(field)};\n"
    text += f"\n{one.keys['cxx']}\n" if "cxx" in one.keys and one.op is None else ""
    if one.keys.get("equatable"):
        text += f"\nbool operator==(const {one.short}&) const = default;\n"
    return text + "};\n\n" + (op_functions(one) if one.op is not None else "")


def form(one):
    """What plans depend on, for the key of those that are kept."""
    names = [field.name for field in one.fields_in("cxx") if not field.is_tensor]
    every = ", ".join(field.name for field in one.fields_in("cxx"))
    return (f"// All fields except tensors: plans depend on every one.\n"
            f"inline auto numbersOf(const {one.cxx}& from) {{\nconst auto& [{every}] = from;\n"
            f"return std::tie({', '.join(names)});\n}}\n\n")


def header(topic):
    text = comment(topic.doc, "//") + "#pragma once\n"
    types = topic.in_language("cxx")
    fields = [field for one in types for field in getattr(one, "fields", [])]
    standard = {"cstdint"}
    standard |= {"optional"} if any(field.optional for field in fields) else set()
    standard |= {"vector"} if any(field.is_list for field in fields) else set()
    standard |= {"array"} if any(field.length for field in fields) else set()
    standard |= {"string"} if any(field.base == "text" for field in fields) else set()
    standard |= {"tuple"} if any(one.keys.get("form") for one in types) else set()
    standard |= set(topic.includes.get("standard", []))
    text += "".join(f"#include <{name}>\n" for name in sorted(standard)) + "\n"
    own = {f"Generated/{used.camel}.hpp" for used in topic.uses if used.in_language("cxx")}
    own |= {"Tensor.hpp"} if any(field.is_tensor for field in fields) else set()
    own |= set(topic.includes.get("cxx", []))
    text += "".join(f'#include "MLXNativeKernels/{name}"\n' for name in sorted(own))
    text += "\nnamespace mnk {\n\n" + topic.includes.get("before", "")
    text += "".join(type_definition(one) for one in types if not one.outer)
    text += "".join(form(one) for one in types if one.keys.get("form"))
    return text + "}  // namespace mnk\n"
