"""The types of the Swift API, and their structs of C."""

from model import NUMBERS, Enum, comment, sentence

IMPORT = "#if SWIFT_PACKAGE\n    internal import MLXNativeKernelsCore\n#endif\n\n"


def value_type(field):
    if "type" in field.swift:
        return field.swift["type"]
    if field.is_tensor:
        base = "Tensor"
    elif field.base == "text":
        return "String?"
    elif field.base in NUMBERS:
        base = NUMBERS[field.base][2]
    else:
        base = field.type.short if field.type.outer == field.owner.name else field.type.name
    if field.is_list:
        return f"[{base}]"
    return base + ("?" if field.optional or field.none or field.default == "only" else "")


def default(field):
    if "default" in field.swift:
        return f" = {field.swift['default']}" if field.swift["default"] else ""
    if field.optional or field.none or field.base == "text" or field.default == "only":
        return " = nil"
    if field.required or field.keys.get("given"):
        return ""
    if field.is_enum:
        return f" = .{field.default}"
    if field.default is not None:
        return {True: " = true", False: " = false"}.get(field.default if isinstance(field.default, bool) else None) or (
            f" = {field.default:g}")
    if field.is_struct:
        return f" = {value_type(field)}()"
    return " = []" if field.is_list else " = false" if field.base == "bool" else " = 0"


def documentation(one):
    text = sentence(one.api, "swift", one.doc, one)
    extra = sentence(one.api, "swift", one.more["swift"], one)
    return comment(text.rstrip() + ("\n\n" + extra if extra else ""), "///", 4 if one.outer else 0)


def enum(one):
    inside = 8 if one.outer else 4
    text = documentation(one) + f"public enum {one.short}: Sendable, Hashable, CaseIterable {{\n"
    for case, doc in one.cases.items():
        text += comment(sentence(one.api, "swift", doc, one), "///", inside) + f"case {case}\n"
    text += f"\nvar code: {one.c} {{\nswitch self {{\n"
    text += "".join(f"case .{case}: .{one.c_case(case)}\n" for case in one.cases)
    return text + "}\n}\n}\n\n"


def label(field):
    given = field.swift.get("label")
    return f"{given} {field.name}" if given else field.name


def initializer(one, fields):
    arguments = ", ".join(f"{label(field)}: {value_type(field)}{default(field)}" for field in fields)
    text = comment(sentence(one.api, "swift", one.keys["swift"]["init"], one), "///", 4)
    text += f"public init({arguments}) {{\n" if len(arguments) < 95 else f"public init(\n{arguments}\n) {{\n"
    return text + "".join(f"self.{field.name} = {field.name}\n" for field in fields) + "}\n"


def pointer(field):
    return f"{field.name}{'?' if field.optional else ''}.handle.pointer"


def argument(field):
    """The value of a field of C."""
    name = field.name
    if "code" in field.swift:
        return field.swift["code"]
    if field.is_tensor:
        return pointer(field)
    if field.base == "bool":
        return f"{'!' if field.inverse else ''}{name}"
    if field.is_enum:
        return f"{name}.code"
    if field.is_struct:
        attempt, arguments = ("try ", "(of: owner, op: op)") if can_throw(field.type) else ("", "")
        given, otherwise = ("?", f" ?? {field.type.c}()") if field.optional else ("", "")
        return f"{attempt}{name}{given}.descriptor{arguments}{otherwise}"
    if field.base == "sequence":
        return f"try UInt64(sequence: {name}, op: op)"
    value = f"{name} ?? 0" if field.optional or field.none else name
    if field.zero:
        value = f'nonzero({value}, "{name}", of: owner, op: op)'
    if field.base in ("f32", "f64"):
        return f"try {value}" if field.zero else value
    if field.base == "i64":
        return f"Int64({value})"
    return f'try {"UInt32" if field.base == "u32" else "UInt64"}({value}, "{name}", of: owner, op: op)'


def can_throw(one):
    """Whether a number may be out of the range of C."""
    return any("try " in argument(field) for field in one.fields_in("c"))


def descriptor(one):
    fields = one.fields_in("c")
    lines = []
    for field in fields:
        if field.has_flag:
            lines.append(f"has_{field.c}: {field.name} != nil")
        lines.append(f"{field.c}: {argument(field)}")
    throws = can_throw(one)
    body = f"{one.c}(\n" + ",\n".join(lines) + ")\n"
    head = "func descriptor(of owner: String = \"\", op: String) throws(KernelError)" if throws else "var descriptor:"
    return f"\n{head} {'->' if throws else ''} {one.c} {{\n{body}}}\n"


def from_c(one):
    values = ", ".join(f"{field.name}: Int(clamping: descriptor.{field.c})" for field in one.fields_in("swift"))
    return f"\ninit(_ descriptor: {one.c}) {{\nself.init(\n{values})\n}}\n"


def struct(one):
    protocols = "Sendable" if one.holds_tensors else "Sendable, Hashable"
    text = documentation(one) + f"public struct {one.short}: {protocols} {{\n"
    for inner in one.api.nested(one, "swift"):
        text += enum(inner) if isinstance(inner, Enum) else struct(inner)
    fields = one.fields_in("swift")
    for field in fields:
        doc = sentence(one.api, "swift", field.swift.get("doc", field.doc), one, field)
        text += comment(doc, "///", 8 if one.outer else 4)
        text += f"public var {field.name}: {value_type(field)}\n"
    text += "\n"
    if "init" in one.keys["swift"]:
        text += initializer(one, fields)
    if one.keys["swift"].get("descriptor", True):
        text += descriptor(one)
    if one.keys["swift"].get("from_c"):
        text += from_c(one)
    return text + "}\n\n"


def source(topic):
    text = ""
    for one in topic.in_language("swift"):
        if one.outer and "swift" in topic.api.types[one.outer].languages:
            continue
        body = enum(one) if isinstance(one, Enum) else struct(one)
        text += f"extension {one.outer} {{\n{body.rstrip()}\n}}\n\n" if one.outer else body
    uses = "mnk_" in text
    return (IMPORT if uses else "") + text.rstrip() + "\n" if text else ""
