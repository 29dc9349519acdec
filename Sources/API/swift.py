"""The types of the Swift API, and their structs of C."""

from c import singular
from model import NUMBERS, Enum, Foreign, Union, comment, documented, quoted

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
        base = field.type.short if field.type.outer == field.owner.name else field.type.swift
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
    return documented("swift", f"{one.doc.rstrip()}\n\n{one.more['swift']}", one, indent=4 if "." in one.swift else 0)


def enum(one):
    outer, _, short = one.swift.rpartition(".")
    keys = one.keys.get("swift", {})
    protocols = "String, Sendable, CaseIterable" if "raw" in keys else "Sendable, Hashable, CaseIterable"
    text = documentation(one) + f"public enum {short}: {protocols} {{\n"
    for case, doc in one.cases.items():
        text += documented("swift", doc, one, indent=8 if outer else 4) + f"case {one.words[case]}"
        text += f" = {quoted(one.names[case])}\n" if "names" in one.keys else "\n"
    if not one.is_returned:
        text += f"\nvar code: {one.c} {{\nswitch self {{\n"
        text += "".join(f"case .{one.words[case]}: .{one.c_case(case)}\n" for case in one.cases) + "}\n}\n"
    if "from_c" in keys:
        text += f"\ninit(_ code: {one.c}) {{\nswitch code {{\n"
        text += "".join(f"case .{one.c_case(case)}: self = .{one.words[case]}\n" for case in one.cases) + "}\n}\n"
    return text + "}\n\n"


def union(one):
    """An enum of structs."""
    text = documentation(one) + f"public enum {one.short}: Sendable {{\n"
    for field in one.fields:
        text += documented("swift", field.doc, one, field, indent=8)
        text += f"case {field.swift_name}({value_type(field)})\n"
    text += f"\n{signature(one)} {{\nvar given = {one.c}()\nswitch self {{\n"
    for field in one.fields:
        text += f"case .{field.swift_name}(let {field.swift_name}): given.{field.c} = {argument(field)}\n"
    return text + "}\nreturn given\n}\n}\n\n"


def flattened(fields):
    """Fields as they are in Swift, where those of some structs take the place of the struct."""
    return [inner for field in fields for inner in (field.type.fields if field.swift.get("flat") else [field])]


def label(field):
    given = field.swift.get("label")
    return f"{given} {field.swift_name}" if given else field.swift_name


def initializer(one, doc, arguments, values):
    """Values by field."""
    arguments = ", ".join(arguments)
    text = documented("swift", doc, one, indent=4)
    text += f"public init({arguments}) {{\n" if len(arguments) < 95 else f"public init(\n{arguments}\n) {{\n"
    return text + "".join(f"self.{field.swift_name} = {value}\n" for field, value in values.items()) + "}\n"


def full_initializer(one, fields):
    return initializer(one, one.keys["swift"]["init"],
                       [f"{label(field)}: {value_type(field)}{default(field)}" for field in fields],
                       {field: field.swift_name for field in fields})


def initializers(one):
    """Those that take some fields: each word is a name after its label, if it has one, with ! if it has no default."""
    every = {field.name: field for field in flattened(one.fields_in("swift"))}
    text = ""
    for keys in one.keys["swift"].get("inits", []):
        arguments, values = [], {}
        for word in keys["takes"]:
            before, _, name = word.rpartition(" ")
            field = every[name.rstrip("!")]
            type = value_type(field).rstrip("?") if "!" in name else value_type(field) + default(field)
            values[field] = field.swift_name
            if field.base == "HeadsView":
                type = "(any HeadsViewConvertible)? = nil" if field.optional else "some HeadsViewConvertible"
                values[field] += "?.headsView" if field.optional else ".headsView"
            arguments.append(f"{before} {field.swift_name}: {type}".strip())
        text += "\n" + initializer(one, keys["doc"], arguments, values)
    return f"extension {one.swift} {{\n{text.lstrip()}}}\n\n" if text else ""


def pointer(field):
    return f"{field.swift_name}{'?' if field.optional else ''}.handle.pointer"


def needs_memory(one):
    """Whether its struct of C points to lists, which live as long as the call."""
    return isinstance(one, Foreign) or any(
        field.is_list or field.base == "text" or field.is_struct and needs_memory(field.type)
        for field in one.fields_in("c"))


def passed(one, owner="owner"):
    """The arguments of a type's function that makes the struct of C."""
    if not can_throw(one):
        return ""
    return f"(of: {owner}, op: op{', in: memory' if needs_memory(one) else ''})"


def argument(field):
    """The value of a field of C."""
    name = field.swift_name
    if field.swift.get("flat"):
        return f"{field.base}({', '.join(f'{inner.name}: {inner.name}' for inner in field.type.fields)}).descriptor"
    if field.is_list and field.is_struct:
        return (f"try memory.keep({name}.map {{ (one) throws(KernelError) in try one.descriptor"
                + passed(field.type, quoted("")) + " })")
    if field.is_list or field.base == "text":
        return f"memory.keep({name})"
    if field.is_enum and field.optional:
        return f"({name} ?? .{next(iter(field.type.cases))}).code"
    if "code" in field.swift:
        return field.swift["code"]
    if field.is_tensor:
        return pointer(field)
    if field.base == "bool":
        return f"{'!' if field.inverse else ''}{name}"
    if field.is_enum:
        return f"{name}.code"
    if field.is_struct:
        attempt = "try " if can_throw(field.type) else ""
        owner = quoted(name) if field.is_foreign or field.owner.op is not None else "owner"
        arguments = passed(field.type, owner)
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
    return needs_memory(one) or any("try " in argument(field) for field in one.fields_in("c"))


def signature(one):
    if not can_throw(one) and one.op is None:
        return f"var descriptor: {one.c}"
    memory = ", in memory: CallMemory" if needs_memory(one) or one.op is not None else ""
    return f"func descriptor(of owner: String = \"\", op: String{memory}) throws(KernelError) -> {one.c}"


def descriptor(one):
    fields = one.fields_in("c")
    lines = []
    for field in fields:
        if field.has_flag:
            lines.append(f"has_{field.c}: {field.swift_name} != nil")
        lines.append(f"{field.c}: {argument(field)}")
        if field.is_list:
            lines.append(f"{singular(field.c)}_count: {field.swift_name}.count")
    return f"\n{signature(one)} {{\n{one.c}(\n" + ",\n".join(lines) + ")\n}\n"


def op_functions(one):
    takesDevice = one.op.get("device")
    text = "\n" + comment("Checks every rule and returns what would run" + (
        " on a device, or on an unknown GPU, without running it.\n\nTo encode the plan, pass the device that will run it."
        if takesDevice else ", without running it.") + "\n\n- Throws: ``KernelError`` for the first broken rule.", "///", 4)
    argument, device = ("for device: KernelDevice? = nil", "device?.handle.pointer, ") if takesDevice else ("", "")
    return text + (f"public func plan({argument}) throws(KernelError) -> Plan {{\n"
                   f"try withDescriptor {{ descriptor throws(KernelError) in\n"
                   f"try Plan {{ {one.c}_make_plan(descriptor, {device}$0) }}\n}}\n}}\n")


def op_extension(one):
    return ("extension KernelEncoder {\n" + comment(
        f"Records a ``{one.name}``.\n\n- Throws: ``KernelError`` for the first broken rule; nothing is recorded then.",
        "///", 4) + f"public func encode(_ op: {one.name}) throws(KernelError) {{\n"
        f"try op.withDescriptor {{ descriptor throws(KernelError) in\n"
        f"try record {{ {one.c.replace('mnk_', 'mnk_encoder_', 1)}($0, descriptor, $1) }}\n}}\n}}\n}}\n\n")


def from_c(one):
    values = ", ".join(f"{field.swift_name}: Int(clamping: descriptor.{field.c})" for field in one.fields_in("swift"))
    return f"\ninit(_ descriptor: {one.c}) {{\nself.init(\n{values})\n}}\n"


def struct(one):
    protocols = "Sendable, Op" if one.op is not None else "Sendable" if one.holds_tensors else "Sendable, Hashable"
    text = documentation(one) + f"public struct {one.short}: {protocols} {{\n"
    for inner in one.api.nested(one, "swift"):
        text += type_definition(inner)
    fields = flattened(one.fields_in("swift"))
    for field in fields:
        text += documented("swift", field.swift.get("doc", field.doc), one, field, 8 if one.outer else 4)
        text += f"public var {field.swift_name}: {value_type(field)}"
        text += default(field) + "\n" if one.op is not None and "init" not in one.keys["swift"] else "\n"
    text += "\n"
    if "init" in one.keys["swift"]:
        text += full_initializer(one, fields)
    text += f'\nstatic var name: String {{ "{one.name}" }}\n' + op_functions(one) if one.op is not None else ""
    text += descriptor(one)
    if one.keys["swift"].get("from_c"):
        text += from_c(one)
    return text + "}\n\n" + initializers(one) + (op_extension(one) if one.op is not None else "")


def type_definition(one):
    return enum(one) if isinstance(one, Enum) else union(one) if isinstance(one, Union) else struct(one)


def source(topic):
    text = ""
    for one in topic.in_language("swift"):
        outer = one.swift.rpartition(".")[0]
        if outer in topic.api.types and "swift" in topic.api.types[outer].languages:
            continue
        body = type_definition(one)
        text += f"extension {outer} {{\n{body.rstrip()}\n}}\n\n" if outer else body
    uses = "mnk_" in text
    return (IMPORT if uses else "") + text.rstrip() + "\n" if text else ""
