"""The classes of the Objective-C API, and the functions that turn them into structs of C."""

from c import ordered, singular
from model import NUMBERS, Enum, Union, capital, documented, quoted

UNAVAILABLE = "- (instancetype)init NS_UNAVAILABLE;\n+ (instancetype)new NS_UNAVAILABLE;\n\n"


def enum(one):
    text = documented("objc", one.doc, one)
    # The formatter takes a name for Swift in an enum for something else.
    named = {case for case, word in one.words.items() if capital(word) != word[0].upper() + word[1:]}
    text = ("// clang-format off\n" if named else "") + text
    domain = one.keys.get("objc_domain")
    text += f"typedef NS_ERROR_ENUM({domain}, {one.objc}) {{\n" if domain else f"typedef NS_CLOSED_ENUM(uint32_t, {one.objc}) {{\n"
    for case, doc in one.cases.items():
        text += documented("objc", doc, one, indent=2)
        swift = f" NS_SWIFT_NAME({one.words[case]})" if case in named else ""
        text += f"  {one.objc_case(case)}{swift} = {one.c_case(case)},\n"
    return text + "};\n" + ("// clang-format on\n" if named else "") + "\n"


def declared(field):
    """The type of a property or an argument, with what follows it before the name."""
    if field.is_tensor:
        return "MNKTensor *"
    if field.base == "text":
        return "NSString *"
    if field.is_list or field.length:
        return f"NSArray<{field.type.objc if field.is_struct else 'NSNumber'} *> *"
    if field.optional and not field.is_struct:
        return "NSNumber *"
    if field.is_union:
        return f"id<{field.type.objc}> "
    if field.base in NUMBERS:
        return NUMBERS[field.base][1] + " "
    return field.type.objc + (" *" if field.is_struct else " ")


def is_nullable(field):
    return field.optional or field.base == "text" or field.is_list and not field.keys.get("given")


def is_copied(field):
    """Whether it is an object that may be mutable."""
    return field.is_union or not field.is_tensor and declared(field).endswith("*")


def default(field):
    """What an instance variable starts with, if it is not zero."""
    if field.is_enum and field.default and not field.optional:
        return field.type.objc_case(field.default)
    if field.default == "only":
        return "MNKOnlySequence"
    if field.default is True:
        return "YES"
    if field.number_default is not None:
        return f"{field.default:g}"
    if field.length:
        return "@[]"
    if field.is_struct and not field.required and not field.optional:
        return f"[[{field.type.objc} alloc] init]"
    return ""


def explained(field):
    text = field.doc.rstrip()
    if field in designated(field.owner):
        pass
    elif field.is_enum and not field.optional:
        first, _, rest = text.partition("\n\n")
        text = f"{first} {{{field.base}.{field.default}}} by default." + (f"\n\n{rest}" if rest else "")
    elif field.default == "only":
        text += " It is the default: a cache of several sequences needs one of them."
    elif field.default is True:
        text += " {true} by default."
    elif field.number_default is not None and not field.keys.get("zero_in_core"):
        text += f" {field.default:g} by default."
    return documented("objc", text, field.owner, field)


def property_line(field, readonly):
    keys = ["nonatomic"] + (["readonly"] if readonly else [])
    keys += [f"getter={field.name}"] if field.base == "bool" and field.objc != field.name else []
    keys += ["nullable"] if is_nullable(field) else []
    keys += ["copy"] if is_copied(field) else []
    return explained(field) + f"@property({', '.join(keys)}) {declared(field)}{field.objc};\n"


def designated(one):
    """The fields that the designated initializer takes."""
    return [one.field(name) for name in one.keys.get("init", [])]


def short(one):
    """The fields that a convenience initializer takes."""
    return [one.field(name) for name in one.keys.get("short_init", [])]


def labels(fields):
    return [f"initWith{capital(field.objc)}" if index == 0 else field.objc for index, field in enumerate(fields)]


def signature(one, fields):
    parts = []
    for label, field in zip(labels(fields), fields):
        nullable = "nullable " if is_nullable(field) else ""
        parts.append(f"{label}:({nullable}{declared(field).rstrip()}){field.objc}")
    return "- (instancetype)" + " ".join(parts)


def interface(one):
    text = documented("objc", one.doc.rstrip() + "\n\n" + one.more["objc"], one)
    if isinstance(one, Union):
        text += f"@protocol {one.objc} <NSObject, NSCopying>\n@end\n\n"
        for field in one.fields:
            text += documented("objc", field.doc, one, field)
            text += f"@interface {field.type.objc} ({one.objc}) <{one.objc}>\n@end\n\n"
        return text
    text += f"@interface {one.objc} : {'MNKDescriptor' if one.op is None else 'MNKOperation'}\n\n"
    fields = designated(one)
    if fields:
        text += UNAVAILABLE
        text += signature(one, fields) + " NS_DESIGNATED_INITIALIZER;\n"
        text += signature(one, short(one)) + ";\n\n" if short(one) else "\n"
    text += "".join(property_line(field, one.keys.get("readonly")) for field in one.fields_in("objc"))
    return text + "\n@end\n\n"


def header(topic):
    types = topic.in_language("objc")
    classes = ordered(topic.structs("objc"))
    text = f"#import <{'MLXNativeKernels/MNKDescriptor.h' if classes else 'Foundation/Foundation.h'}>\n"
    text += "".join(f"#import <MLXNativeKernels/Generated/MNK{used.camel}.h>\n" for used in topic.uses
                    if used.in_language("objc"))
    text += "".join(f"#import <MLXNativeKernels/{name}>\n" for name in topic.includes.get("objc", []))
    text += f'#include "MLXNativeKernels/Generated/mnk_{topic.stem}.h"\n\n'
    if any(field.is_tensor for one in types for field in getattr(one, "fields", [])):
        text += "@class MNKTensor;\n\n"
    text += "NS_ASSUME_NONNULL_BEGIN\n\n" + topic.includes.get("objc_before", "")
    text += "".join(enum(one) for one in types if isinstance(one, Enum)) + "".join(interface(one) for one in classes)
    return text + "NS_ASSUME_NONNULL_END\n"


def op_methods(one):
    """What a plan and an encoder need of an op."""
    device = ", device" if one.op.get("device") else ""
    encode = one.c.replace("mnk_", "mnk_encoder_", 1)
    text = ""
    for head, call in (("Result<mnk_plan *>)planForHandle:(const mnk_device *)device", f"{one.c}_make_plan, &op{device}"),
                       ("Result<void>)encodeWithHandle:(mnk_encoder *)encoder", f"{encode}, encoder, &op")):
        text += (f'- ({head} {{\nobjc::Reading reading("{one.name}");\n'
                 f'const auto op = objc::structFrom(reading, self, "the op");\n'
                 f"return objc::call(reading, {call});\n}}\n\n")
    return text


def implementation(one):
    if isinstance(one, Union):
        return "".join(f"@implementation {field.type.objc} ({one.objc})\n@end\n\n" for field in one.fields)
    text = f"@implementation {one.objc}\n\n+ (NSArray<NSString *> *)valueKeys {{\nreturn @[ "
    text += ", ".join(f'@"{field.objc}"' for field in one.fields_in("objc")) + " ];\n}\n\n"
    fields = designated(one)
    others = [field for field in one.fields_in("objc") if default(field) and field not in fields]
    if fields or others:
        text += (signature(one, fields).replace("nullable ", "") if fields else "- (instancetype)init") + " {\n"
        text += "if ((self = [super init])) {\n"
        for field in fields:
            object = f"(id){field.objc}" if field.is_union else field.objc
            text += f"_{field.objc} = {f'[{object} copy]' if is_copied(field) else field.objc};\n"
        text += "".join(f"_{field.objc} = {default(field)};\n" for field in others)
        text += "}\nreturn self;\n}\n\n"
    if short(one):
        values = [field.objc if field in short(one) else default(field) or ("nil" if is_nullable(field) else "0")
                  for field in fields]
        call = " ".join(f"{label}:{value}" for label, value in zip(labels(fields), values))
        text += signature(one, short(one)).replace("nullable ", "") + f" {{\nreturn [self {call}];\n}}\n\n"
    if one.keys.get("readonly"):
        text += "- (id)copyWithZone:(NSZone *)zone {\nreturn self;  // immutable\n}\n\n"
    text += op_methods(one) if one.op is not None else ""
    return text + "@end\n\n"


def enum_reader(one):
    cases = ", ".join(one.c_case(case) for case in one.cases)
    return (f"{one.c} enumFrom(Reading &reading, {one.objc} value, std::string_view name) {{\n"
            f'return reading.choice<{one.c}>(value, {{{cases}}}, name, "{one.objc}");\n}}\n\n')


def read_field(field):
    at, into = f"object.{field.objc}", f"into.{field.c}"
    if field.base == "bool":
        return f"{into} = object.{field.name} {'==' if field.inverse else '!='} NO;\n"
    if field.is_tensor:
        check = "" if is_nullable(field) else f'reading.needed({at}, "{field.objc}");\n'
        return check + f'{into} = handleOf(reading, {at}, "{field.objc}");\n'
    if field.base == "text":
        return f"{into} = {at} ? reading.keep(textFrom({at})) : nullptr;\n"
    if field.is_enum and field.optional:
        number = f"static_cast<{field.type.objc}>(reading.integer<uint32_t>({at}, {quoted(field.objc)}))"
        return f'if ({at}) {{\ninto.has_{field.c} = true;\n{into} = enumFrom(reading, {number}, "{field.objc}");\n}}\n'
    if field.is_enum:
        return f'{into} = enumFrom(reading, {at}, "{field.objc}");\n'
    if field.is_list and field.is_struct:
        return (f"std::vector<{field.type.c}> {field.name};\nfor ({field.type.objc} *one in {at}) {{\n"
                f'if (!reading.isA([{field.type.objc} class], one, "{field.objc}")) break;\n'
                f'{field.name}.push_back(structFrom(reading, one, "{field.objc}"));\n}}\n'
                f"into.{singular(field.c)}_count = {field.name}.size();\n"
                f"{into} = {field.name}.empty() ? nullptr : reading.keep(std::move({field.name})).data();\n")
    if field.is_foreign:
        given = f"if ({at}) " if field.optional else ""
        return f'{given}fill(reading, {into}, {at}, "{field.objc}");\n'
    if field.is_list:
        return (f'const auto &{field.name} = reading.keep(reading.floats({at}, "{field.objc}"));\n'
                f"{into} = {field.name}.empty() ? nullptr : {field.name}.data();\n"
                f"into.{singular(field.c)}_count = {field.name}.size();\n")
    if field.length:
        return f'reading.fill({into}, {at}, "{field.objc}");\n'
    if field.is_struct:
        flag = f"into.has_{field.c} = true;\n" if field.has_flag else ""
        read = f'{into} = structFrom(reading, {at}, "{field.objc}");\n'
        return f"if ({at}) {{\n{flag}{read}}}\n" if field.optional else read
    if field.optional:
        return (f"if ({at}) {{\ninto.has_{field.c} = true;\n"
                f'{into} = reading.integer<{NUMBERS[field.base][0]}>({at}, "{field.objc}");\n}}\n')
    if field.base == "sequence":
        return f"{into} = sequenceNumber({at});\n"
    value = f'reading.narrow({at}, "{field.objc}")' if field.base == "u32" else at
    if field.zero:
        value = f'reading.nonzero({value}, "{field.objc}")'
    return f"{into} = {value};\n"


def needs_object(one):
    """Whether zeros in C are not the defaults, so that nil cannot stand for them."""
    return bool(designated(one)) or not all(is_zero_in_c(field) for field in one.fields_in("c"))


def is_zero_in_c(field):
    """Whether zero in C is the default, or stands for it."""
    if field.optional:
        return True
    if field.is_enum:
        return field.type.has_default or field.type.numbers[field.default] == 0
    if field.is_struct:
        return all(is_zero_in_c(inner) for inner in field.type.fields_in("c"))
    return field.zero or field.inverse or not field.default


def union_reader(one):
    text = (f"{one.c} structFrom(Reading &reading, id<{one.objc}> object, std::string_view name) {{\n{one.c} into{{}};\n"
            "if (!reading.needed(object, name)) return into;\n")
    for field in one.fields:
        text += (f"if ([object isKindOfClass:[{field.type.objc} class]]) {{\n"
                 f"into.{field.c} = structFrom(reading, static_cast<{field.type.objc} *>(object), name);\nreturn into;\n}}\n")
    classes = " or ".join(field.type.objc for field in one.fields)
    return text + f'reading.failForClass(object, name, "{classes}");\nreturn into;\n}}\n\n'


def reader(one):
    if isinstance(one, Union):
        return union_reader(one)
    body = "".join(read_field(field) for field in one.fields_in("objc") if field.exists_in("c"))
    isMissing = "!reading.needed(object, name)" if needs_object(one) else "!object"
    body = f"if ({isMissing} || !reading.isA([{one.objc} class], object, name)) return into;\n{body}"
    return (f"{one.c} structFrom(Reading &reading, {one.objc} *object, std::string_view name) {{\n"
            f"{one.c} into{{}};\n{body}return into;\n}}\n\n")


def boxed(field, value, function="objectFrom", tensor="tensorFrom"):
    """A value of the core as one of Objective-C."""
    if field.is_tensor:
        needed = "" if is_nullable(field) else "(MNKTensor *_Nonnull)"
        return f"{needed}{tensor}({value})"
    if field.base == "text":
        return f"{value}.empty() ? nil : stringFrom({value})"
    if field.is_list and field.is_struct:
        return f"objectsFor({value})"
    if field.is_list or field.length:
        return f"numbersFrom({value})"
    if field.is_enum and field.optional:
        return f"{value} ? @(c::write(*{value})) : nil"
    if field.is_enum:
        return f"static_cast<{field.type.objc}>(c::write({value}))"
    if field.is_struct:
        return f"{value} ? {function}(*{value}) : nil" if field.optional else f"{function}({value})"
    if field.optional:
        return f"{value} ? @(*{value}) : nil"
    return f"sequenceFrom({value})" if field.base == "sequence" else value


def is_made_from_core(one):
    """Whether the framework returns such objects."""
    return one.op is None and not isinstance(one, Union) and not any(field.is_foreign for field in one.fields)


def from_core(one, function="objectFrom", tensor="tensorFrom"):
    if isinstance(one, Union):
        held = "".join(f"if (const auto *one = std::get_if<{index}>(&core)) return {function}(*one);\n"
                       for index in range(len(one.fields) - 1))
        return (f"id<{one.objc}> {function}(const {one.cxx} &core) {{\n{held}"
                f"return {function}(std::get<{len(one.fields) - 1}>(core));\n}}\n\n")
    fields = designated(one)
    values = {field: boxed(field, f"core.{field.name}", function, tensor) for field in one.fields_in("objc")}
    text = f"{one.objc} *{function}(const {one.cxx} &core) {{\n{one.objc} *object = [[{one.objc} alloc] "
    text += " ".join(f"{name}:{values[field]}" for name, field in zip(labels(fields), fields)) or "init"
    text += "];\n"
    for field, value in values.items():
        text += f"object.{field.objc} = {value};\n" if field not in fields else ""
    return text + "return object;\n}\n\n"


def declarations(api):
    text = "// Reads objects into structs of C, whose lists belong to the reading, and makes objects of the core's structs.\n"
    text += "#pragma once\n"
    text += '#import "ObjC/Core.hpp"\n\nNS_ASSUME_NONNULL_BEGIN\n\nnamespace mnk::objc {\n\n'
    for one in api.in_language("objc"):
        if isinstance(one, Enum):
            if not one.is_returned:
                text += f"{one.c} enumFrom(Reading &reading, {one.objc} value, std::string_view name);\n"
            continue
        type = f"id<{one.objc}> _Nullable " if isinstance(one, Union) else f"{one.objc} *_Nullable "
        text += f"{one.c} structFrom(Reading &reading, {type}object, std::string_view name);\n"
        if is_made_from_core(one):
            text += f"{one.objc} *objectFrom(const {one.cxx} &core);\n"
    return text + "\n}  // namespace mnk::objc\n\nNS_ASSUME_NONNULL_END\n"


def source(topic):
    types = topic.in_language("objc")
    classes = topic.structs("objc")
    text = '#include "CAPI/Generated/Read.hpp"\n#include "CAPI/Generated/Write.hpp"\n'
    text += '#import "ObjC/Generated/Read.hpp"\n\nusing namespace mnk;\n\n'
    text += "".join(implementation(one) for one in classes)
    text += "namespace mnk::objc {\n\n" + "".join(
        enum_reader(one) for one in types if one not in classes and not one.is_returned)
    for one in classes:
        text += reader(one)
        text += from_core(one) if is_made_from_core(one) else ""
    return text + "}  // namespace mnk::objc\n"
