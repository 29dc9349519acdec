"""The structs of the C API, and the functions that read them into those of C++."""

from model import NUMBERS, Enum, Union, comment, documented


def value_type(field):
    if field.base in NUMBERS:
        return NUMBERS[field.base][0]
    return field.type.c


def enum(one):
    text = documented("c", one.doc, one)
    text += f"typedef enum MNK_CLOSED({one.c}) {{\n"
    if one.has_default:
        text += f"  // The default of the field.\n  {one.c.upper()}_DEFAULT = 0,\n"
    for case, doc in one.cases.items():
        text += documented("c", doc, one, indent=2)
        text += f"  {one.c_case(case)} = {one.c_number(case)},\n"
    return text + f"}} {one.c};\n\n"


def explained(field):
    """The documentation, and what zero stands for."""
    text = field.keys.get("c_doc", field.doc)
    number = field.number_default
    if field.default == "only":
        text = text.rstrip() + " 0 is the first sequence."
    elif field.zero:
        text = text.rstrip() + f" 0 stands for {number:g}."
    elif number is not None and not field.keys.get("given") and not field.keys.get("zero_in_core"):
        text = text.rstrip() + f" The other languages' default is {number:g}."
    elif field.is_enum and field.optional:
        pass
    elif field.is_enum and field.type.has_default:
        text = text.rstrip() + f" 0 stands for `{field.type.c_case(field.default)}`."
    elif field.is_enum and field.type.numbers[field.default] != 0:
        text = text.rstrip() + f" The other languages' default is `{field.type.c_case(field.default)}`."
    return documented("c", text, field.owner, field, indent=2)


def field_lines(field):
    text = explained(field)
    if field.has_flag:
        rest = "all of it" if field.is_struct else "it"
        flag = comment(f"Whether `{field.c}` is used. Otherwise, {rest} must be 0.", "//", 2)
        return flag + f"bool has_{field.c};\n" + text + f"{value_type(field)} {field.c};\n"
    if field.is_tensor:
        nullable = "" if field.required and not field.owner.can_be_left_out else " MNK_NULLABLE"
        return text + f"mnk_tensor*{nullable} {field.c};\n"
    if field.base == "text":
        return text + f"const char* MNK_NULLABLE {field.c};\n"
    if field.is_list:
        return text + f"const {value_type(field)}* MNK_NULLABLE {field.c};\nsize_t {singular(field.c)}_count;\n"
    if field.length:
        return text + f"{value_type(field)} {field.c}[{field.length}];\n"
    return text + f"{value_type(field)} {field.c};\n"


def singular(name):
    return name.removesuffix("s")


def struct(one):
    text = documented("c", one.doc, one)
    if one.can_be_left_out and one.presence:
        needed = one.field(one.presence).c
        text += "//\n" + comment(f"Without `{needed}` it is left out, and all of it must be 0.", "//")
    if isinstance(one, Union):
        text += "// Exactly one of these is filled in.\n"
    text += f"typedef struct {one.c} {{\n"
    text += "".join(field_lines(field) for field in one.fields_in("c"))
    return text + f"}} {one.c};\n\n" + (op_declarations(one) if one.op is not None else "")


def op_signatures(one):
    device = "const mnk_device* MNK_NULLABLE device, " if one.op.get("device") else ""
    return (f"mnk_plan* MNK_NULLABLE {one.c}_make_plan(const {one.c}* op, {device}mnk_error_out error)",
            f"bool {one.c.replace('mnk_', 'mnk_encoder_', 1)}(mnk_encoder* encoder, const {one.c}* op, mnk_error_out error)")


def op_declarations(one):
    make_plan, encode = op_signatures(one)
    where = " on a device, or on an unknown GPU" if one.op.get("device") else ""
    return f"// Checks every rule and returns what would run{where}, without running it.\n{make_plan};\n{encode};\n\n"


def op_definitions(one):
    make_plan, encode = (text.replace(" MNK_NULLABLE", "") for text in op_signatures(one))
    device = ", device" if one.op.get("device") else ""
    return (f"{make_plan} {{\nreturn c::makePlan<{one.cxx}>(op{device}, error);\n}}\n\n"
            f"{encode} {{\nreturn c::encode<{one.cxx}>(encoder, op, error);\n}}\n\n")


def ordered(types):
    """Inner types before those that use them."""
    done = []

    def add(one):
        for field in getattr(one, "fields", []):
            if field.type in types and field.type not in done:
                add(field.type)
        if one not in done:
            done.append(one)
    for one in types:
        add(one)
    return done


def header(topic):
    guard = f"MNK_{topic.stem}_H".upper()
    text = comment(topic.doc, "//") + f"#ifndef {guard}\n#define {guard}\n\n"
    own = {f"Generated/mnk_{used.stem}.h" for used in topic.uses if used.in_language("c")} 
    own |= {"mnk_core.h" if topic.structs("c") else "mnk_language.h"} | set(topic.includes.get("c", []))
    text += "".join(f'#include "MLXNativeKernels/{name}"\n' for name in sorted(own))
    text += "\nMNK_HEADER_BEGIN\n\n"
    for one in ordered(topic.in_language("c")):
        text += enum(one) if isinstance(one, Enum) else struct(one)
    return text + "MNK_HEADER_END\n\n#endif\n"


def read_enum(one):
    text = f"Result<void> read({one.cxx}& into, {one.c} from) {{\nswitch (static_cast<uint32_t>(from)) {{\n"
    if one.has_default:
        text += f"case {one.c.upper()}_DEFAULT: return {{}};\n"
    for case in one.cases:
        text += f"case {one.c_case(case)}: into = {one.cxx}::{case}; return {{}};\n"
    names = [one.c_case(case) for case in one.cases]
    first = one.c.upper() + "_DEFAULT" if one.has_default else names[0]
    hasGaps = list(one.numbers.values()) != list(range(len(names)))
    expected = f"{', '.join(names[:-1])} or {names[-1]}" if hasGaps else f"{first} to {names[-1]}"
    return text + f'}}\nreturn unknownNumber("{one.c}", from, "{expected}");\n}}\n\n'


def filled(field):
    at = f"from.{field.c}"
    if field.is_list:
        return f"{at} || from.{singular(field.c)}_count != 0"
    flag = f"from.has_{field.c} || " if field.has_flag else ""
    if field.is_struct:
        return f"{flag}isFilled({at})"
    if field.length:
        return " || ".join(f"{at}[{index}] != 0" for index in range(field.length))
    isCondition = field.is_tensor or field.is_list or field.base in ("text", "bool")
    return flag + (at if isCondition else f"{at} != 0")


def named(one):
    """What errors name."""
    return one.c if one.op is None else one.name


def read_field(field):
    into, at, c = f"into.{field.name}", f"from.{field.c}", field.c
    below = f'{{&field, "{c}"}}'
    if field.is_tensor:
        if field.optional and not field.keys.get("empty"):
            return f"{into} = optional({at});\n"
        if field.keys.get("empty"):
            return f"if ({at}) {into} = {at}->tensor;\n"
        return f"if (!{at}) return nullArgument(Field{below});\n{into} = {at}->tensor;\n"
    if field.has_flag:
        flag = f"from.has_{c}"
        isFilled = f"isFilled({at})" if field.is_struct else f"{at} != 0"
        read = f"MNK_TRY(read({into}.emplace(), {at}, {below}));" if field.is_struct else f"{into} = {at};"
        if field.is_enum:
            read = f"MNK_TRY(read({into}.emplace(), {at}));"
        return (f"if ({flag}) {{\n{read}\n}} else if ({isFilled}) {{\n"
                f'return ignored("{named(field.owner)}", Field{below}.text(), "has_{c}");\n}}\n')
    if field.is_list:
        fix = f', "{field.keys["fix"]}"' if "fix" in field.keys else ""
        return (f"MNK_TRY(readList({into}, {at}, from.{singular(c)}_count, {field.keys['most']}, "
                f'"{named(field.owner)}", {below}, "{singular(c)}_count"{fix}));\n')
    if field.is_struct:
        if field.optional:
            return f"if (isFilled({at})) MNK_TRY(read({into}.emplace(), {at}, {below}));\n"
        return f"MNK_TRY(read({into}, {at}, {below}));\n"
    if field.is_enum:
        return f"MNK_TRY(read({into}, {at}));\n"
    if field.base == "text":
        return f"if ({at}) {into} = {at};\n"
    if field.length:
        return f"std::copy(std::begin({at}), std::end({at}), {into}.begin());\n"
    if field.zero:
        return f"if ({at} != 0) {into} = {at};\n"
    return f"{into} = {'!' if field.inverse else ''}{at};\n"


def is_filled(one):
    conditions = " || ".join(filled(field) for field in one.fields_in("c"))
    return f"bool isFilled(const {one.c}& from) {{\nreturn {conditions};\n}}\n\n"


def read_union(one):
    text = f"Result<void> read({one.cxx}& into, const {one.c}& from, const Field& field) {{\n"
    names = [field.c for field in one.fields]
    text += "const bool given[] = {" + ", ".join(filled(field) for field in one.fields) + "};\n"
    text += f'MNK_TRY(checkOneOf(given, "{" and ".join(names)}", field));\n'
    for index, field in enumerate(one.fields):
        text += f'if (given[{index}]) return read(into.emplace<{index}>(), from.{field.c}, {{&field, "{field.c}"}});\n'
    return text + "return {};\n}\n\n"


def read_struct(one):
    if isinstance(one, Union):
        return read_union(one)
    fields = one.fields_in("c")
    # A view that is missing is refused before what is in it.
    fields = sorted(fields, key=lambda field: field.name != one.presence)
    unused = not any("&field" in read_field(field) for field in fields)
    text = f"Result<void> read({one.cxx}& into, const {one.c}& from, const Field&{'' if unused else ' field'}) {{\n"
    return text + "".join(read_field(field) for field in fields) + "return {};\n}\n\n"


def write_field(field):
    at, into = f"from.{field.name}", f"into.{field.c}"
    if field.is_tensor:
        return f"{into} = handleOf({at});\n"
    if field.has_flag:
        value = f"write(*{at}, handleOf)" if field.is_struct else f"write(*{at})" if field.is_enum else f"*{at}"
        return f"if ({at}) {{\n{into[:5]}has_{field.c} = true;\n{into} = {value};\n}}\n"
    if field.is_list and field.is_struct:
        return (f"std::vector<{field.type.c}> {field.c};\n"
                f"for (const auto& one : {at}) {field.c}.push_back(write(one, handleOf));\n"
                f"{into[:5]}{singular(field.c)}_count = {field.c}.size();\n"
                f"{into} = handleOf.keep(std::move({field.c}));\n")
    if field.is_struct:
        given, value = (f"if ({at}) ", f"*{at}") if field.optional else ("", at)
        return f"{given}{into} = write({value}, handleOf);\n"
    if field.is_enum:
        return f"{into} = write({at});\n"
    if field.base == "text":
        return f"{into} = {at}.empty() ? nullptr : {at}.c_str();\n"
    if field.is_list:
        return f"{into} = {at}.empty() ? nullptr : {at}.data();\ninto.{singular(field.c)}_count = {at}.size();\n"
    if field.length:
        return f"std::copy({at}.begin(), {at}.end(), {into});\n"
    return f"{into} = {'!' if field.inverse else ''}{at};\n"


def write_union(one):
    return "".join(f"if (const auto* {field.c} = std::get_if<{index}>(&from)) into.{field.c} = write(*{field.c}, handleOf);\n"
                   for index, field in enumerate(one.fields))


def writers(api):
    text = ("// Writes structs of C++ into those of C. `handleOf` gives the handle of a tensor, or NULL of none;\n"
            "// lists of numbers and strings stay those of the C++ struct, and its `keep` holds lists of structs.\n#pragma once\n"
            '#include <algorithm>\n\n#include "CAPI/Indices.hpp"\n\nnamespace mnk::c {\n\n')
    for one in (one for one in api.in_language("c") if isinstance(one, Enum)):
        shift = " + 1" if one.has_default else ""
        text += (f"inline {one.c} write({one.cxx} from) {{\n"
                 f"return static_cast<{one.c}>(static_cast<uint32_t>(from){shift});\n}}\n")
    text += "\n"
    for one in ordered([one for one in api.in_language("c") if not isinstance(one, Enum)]):
        body = write_union(one) if isinstance(one, Union) else "".join(write_field(field) for field in one.fields_in("c"))
        name = " handleOf" if "handleOf" in body else ""
        text += (f"template <typename Handles>\n{one.c} write(const {one.cxx}& from, Handles&&{name}) {{\n"
                 f"{one.c} into{{}};\n{body}return into;\n}}\n\n")
    return text + "}  // namespace mnk::c\n"


def needs_filled(api):
    """Structs that can be left out, and what is in them."""
    found = [one for one in api.types.values() if getattr(one, "presence", None) or one.keys.get("left_out")]
    found += [field.type for one in api.types.values() for field in getattr(one, "fields", [])
              if (field.has_flag or isinstance(one, Union)) and field.is_struct]
    for one in found:
        found += [field.type for field in one.fields if field.is_struct and field.type not in found]
    return set(found)


def declarations(api):
    text = "// Reads structs of C into those of C++. Zero, where it stands for a default, leaves a field as it is.\n"
    text += "#pragma once\n"
    text += '#include "CAPI/Indices.hpp"\n\nnamespace mnk::c {\n\n'
    for one in api.in_language("c"):
        if isinstance(one, Enum):
            text += f"Result<void> read({one.cxx}& into, {one.c} from);\n" if not one.is_returned else ""
            continue
        text += f"Result<void> read({one.cxx}& into, const {one.c}& from, const Field& field);\n"
        if one in needs_filled(api):
            text += f"// Whether anything is not zero.\nbool isFilled(const {one.c}& from);\n"
    return text + "\n}  // namespace mnk::c\n"


def source(topic):
    text = '#include "CAPI/Generated/Read.hpp"\n#include "Support/Errors.hpp"\n\nnamespace mnk::c {\n\n'
    for one in ordered(topic.in_language("c")):
        if isinstance(one, Enum):
            text += read_enum(one) if not one.is_returned else ""
            continue
        text += is_filled(one) if one in needs_filled(topic.api) else ""
        text += read_struct(one)
    text += "}  // namespace mnk::c\n"
    ops = [one for one in topic.types if getattr(one, "op", None) is not None]
    if ops:
        text = text.replace("#include \"Support/Errors.hpp\"\n", "#include \"CAPI/Ops.hpp\"\n#include \"Support/Errors.hpp\"\n")
        text += "\nusing namespace mnk;\n\n" + "".join(map(op_definitions, ops))
    return text
