"""The description of the API: the types in the .toml files of this folder, and their names in each language.

A file is a topic. A table with `cases` is an enum; another is a struct, and its sub-tables are its fields. README.md
lists all keys.
"""

import dataclasses
import functools
import pathlib
import re
import textwrap
import tomllib

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent

# Words that a change of case alone would split or spell otherwise.
SNAKES = {"YaRN": "yarn", "MultiRoPE": "multi_rope"}
CAPITALS = {"kv": "KV", "rope": "RoPE", "mlx1": "MLX1", "avx2": "AVX2", "avx512": "AVX512", "mrope": "MRoPE", "imrope": "IMRoPE",
            "bfloat": "BFloat", "uint": "UInt"}
NUMBERS = {
    # name: (C++ and C, Objective-C, Swift)
    "u32": ("uint32_t", "NSUInteger", "Int"),
    "u64": ("uint64_t", "NSUInteger", "Int"),
    "i64": ("int64_t", "NSInteger", "Int"),
    "f32": ("float", "float", "Float"),
    "f64": ("double", "double", "Double"),
    "bool": ("bool", "BOOL", "Bool"),
    "sequence": ("uint64_t", "NSUInteger", "Int"),
}
# Words that a language uses for a thing everywhere.
SWIFT_WORDS = {"from": "source", "into": "destination"}
OBJC_WORDS = {"dtype": "elementType", **SWIFT_WORDS}


def snake(name):
    for word, spelling in SNAKES.items():
        name = name.replace(word, spelling.capitalize())
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).replace(".", "_").lower()


def capital(name):
    for word, spelling in CAPITALS.items():
        if name.startswith(word):
            return spelling + name[len(word):]
    return name[0].upper() + name[1:]


@dataclasses.dataclass(eq=False)
class Field:
    owner: "Struct"
    name: str
    keys: dict

    def __post_init__(self):
        match = re.fullmatch(r"([\w.]+)(\?|\[\]|\[\d+\])?", self.keys["type"])
        self.base, suffix = match.group(1), match.group(2) or ""
        self.optional = suffix == "?"
        self.is_list = suffix == "[]"
        self.length = int(suffix[1:-1]) if suffix[1:-1].isdigit() else 0
        self.default = self.keys.get("default")
        self.none = "none" in self.keys
        # In C, zero stands for the default, which is another number.
        self.zero = self.keys.get("zero", False)
        self.swift = self.keys.get("swift", {})
        self.doc = self.keys["doc"]
        self.inverse = "inverse" in self.keys
        self.is_tensor = self.base == "tensor"
        # The default of a number, if it is not 0.
        isNumber = isinstance(self.default, (int, float)) and not isinstance(self.default, bool)
        self.number_default = self.default if isNumber and self.default != 0 else None
        # Its names in the other languages.
        self.c = snake(self.keys.get("inverse", self.name))
        self.swift_name = SWIFT_WORDS.get(self.name, self.name)
        plain = self.name.removeprefix("is") if self.base == "bool" else OBJC_WORDS.get(self.name, self.name)
        self.objc = self.name if plain == self.name else plain[0].lower() + plain[1:]

    def resolve(self):
        """Sets what depends on its type, which may be described later."""
        self.type = self.owner.api.types.get(self.base)
        self.is_enum, self.is_struct = isinstance(self.type, Enum), isinstance(self.type, Struct)
        self.is_foreign, self.is_union = isinstance(self.type, Foreign), isinstance(self.type, Union)
        # The field of its type without which it is left out.
        self.presence = self.type.presence if self.is_struct else None
        # Whether C says with a flag that there is a value.
        self.has_flag = self.optional and not self.is_tensor and self.base != "text" and not self.presence
        return self

    @property
    def required(self):
        """Whether there is no value without it: a tensor, or a struct with one."""
        holds = self.is_tensor or self.is_struct and self.type.holds_required
        return holds and not self.optional

    def exists_in(self, language):
        return language in self.keys.get("only", ("cxx", "c", "objc", "swift"))


class Type:
    def __init__(self, api, topic, name, keys):
        self.api, self.topic, self.name = api, topic, name
        self.outer, _, self.short = name.rpartition(".")
        self.doc = keys.pop("doc")
        self.more = {language: keys.pop(f"{language}_doc", "") for language in ("cxx", "objc", "swift")}
        self.languages = keys.pop("languages", ["cxx", "c", "objc", "swift"])
        self.keys = keys
        # The name as one word, and in each language.
        self.word, self.cxx = name.replace(".", ""), name.replace(".", "::")
        self.c = keys.get("c_name", "mnk_" + snake(name))
        self.objc = keys.get("objc_name", "MNK" + self.word)
        self.swift = keys.get("swift_name", name)


class Enum(Type):
    def __init__(self, api, topic, name, keys):
        super().__init__(api, topic, name, keys)
        self.cases = keys["cases"]
        numbers = keys.get("numbers", {})
        self.numbers = {case: numbers.get(case, index) for index, case in enumerate(self.cases, keys.get("first", 0))}
        # In C, zero stands for the default of the field, which differs from field to field.
        self.has_default = keys.get("has_default", False)
        # Nothing that is passed to the API has it.
        self.is_returned = keys.get("returned", False)
        # The cases in Swift and Objective-C, and the texts of `name` in C++, if they are not the cases.
        self.words, self.names = ({case: case for case in self.cases} | keys.get(key, {}) for key in ("words", "names"))

    def c_number(self, case):
        return self.numbers[case] + (1 if self.has_default else 0)

    def c_case(self, case):
        return f"{self.keys.get('c_prefix', self.c)}_{snake(case)}".upper()

    def objc_case(self, case):
        return self.keys.get("objc_prefix", self.objc) + capital(self.words[case])


def is_field(value):
    return isinstance(value, dict) and "type" in value and "doc" in value


class Struct(Type):
    def __init__(self, api, topic, name, keys):
        super().__init__(api, topic, name, keys)
        self.presence = keys.get("presence")
        # Whether plans are made of it, and work is encoded: what is generated besides the struct.
        self.op = keys.get("op")
        self.fields = [Field(self, field, value) for field, value in keys.items() if is_field(value)]

    def fields_in(self, language):
        return [field for field in self.fields if field.exists_in(language)]

    def field(self, name):
        return next(field for field in self.fields if field.name == name)

    @property
    def holds_required(self):
        return any(field.required for field in self.fields)

    @property
    def can_be_left_out(self):
        return self.keys.get("left_out", False) or any(
            field.type is self and (field.optional or isinstance(field.owner, Union)) for field in self.api.fields)

    @property
    def holds_tensors(self):
        return any(field.is_tensor or field.is_struct and field.type.holds_tensors for field in self.fields)


class Foreign(Struct):
    """A type whose struct of C holds lists or objects: it is written by hand, with the functions of others."""

    holds_required, holds_tensors = False, True

    def __init__(self, api, topic, name, keys):
        super().__init__(api, topic, name, keys)
        # No flag says whether there is one: its `isFilled` does.
        self.presence = "its lists"


class Union(Struct):
    """One of several structs: a variant in C++, an enum in Swift, a protocol in Objective-C, and in C a struct of all of
    them, of which one is filled in."""

    def __init__(self, api, topic, name, keys):
        cases = {one.pop("name"): one for one in keys.pop("union")}
        super().__init__(api, topic, name, {**keys, **cases})

    holds_required = True


@dataclasses.dataclass
class Topic:
    api: "API"
    stem: str
    doc: str
    includes: dict
    types: list = dataclasses.field(default_factory=list)

    @property
    def camel(self):
        return "".join(CAPITALS.get(word, capital(word)) for word in self.stem.split("_"))

    @functools.cached_property
    def uses(self):
        """The topics whose types this one has in its fields."""
        found = []
        for one in self.types:
            for field in getattr(one, "fields", []):
                type = self.api.types["HeadsView"] if field.base == "sequence" else field.type
                topic = type and type.topic
                if topic and topic is not self and topic not in found:
                    found.append(topic)
        return found

    def in_language(self, language):
        return [one for one in self.types if language in one.languages]

    def structs(self, language):
        return [one for one in self.in_language(language) if not isinstance(one, Enum)]


class API:
    def __init__(self):
        self.types, self.topics = {}, []
        files = {path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}
        every = {name: keys for tables in files.values() for name, keys in tables.items()}
        for stem, tables in files.items():
            topic = Topic(self, stem, tables.pop("doc"), tables.pop("includes", {}))
            for name, keys in tables.items():
                if like := keys.pop("like", None):
                    keys = {**{field: value for field, value in every[like].items() if is_field(value)}, **keys}
                is_foreign = keys.get("foreign", False)
                kind = Enum if "cases" in keys else Union if "union" in keys else Foreign if is_foreign else Struct
                self.types[name] = kind(self, topic, name, keys)
                if not is_foreign:
                    topic.types.append(self.types[name])
            self.topics.append(topic)
        for field in self.fields:
            field.resolve()

    @property
    def fields(self):
        return [field for one in self.types.values() for field in getattr(one, "fields", [])]

    def in_language(self, language):
        return [one for topic in self.topics for one in topic.in_language(language)]

    def nested(self, struct, language):
        return [one for one in self.types.values() if one.outer == struct.name and language in one.languages]


def spelled(field, language):
    return {"cxx": field.name, "c": field.c, "objc": field.objc, "swift": field.swift_name}[language]


def reference(api, language, text, owner):
    """A name in a sentence: `.field`, `Type`, `Type.field` or `Type.case`."""
    if text == "only":
        words = {"cxx": "kOnlySequence", "c": "MNK_ONLY_SEQUENCE", "objc": "MNKOnlySequence", "swift": "nil"}
        return f"`{words[language]}`"
    if text.startswith("="):
        return spelled(owner.field(text[1:]), language)
    elements = api.types["DType"].words
    if text in elements:
        return f"`{elements[text]}`" if language in ("objc", "swift") else text
    if text.startswith("."):
        name, member = owner.name, text[1:]
    elif text in api.types:
        name, member = text, ""
    else:
        name, _, member = text.rpartition(".")
    one = api.types[name]
    outer = one.swift.replace(".", "/") if language == "swift" else getattr(one, language)
    between = {"cxx": "::", "swift": "/"}.get(language, ".")
    if not member:
        text = outer
    elif isinstance(one, Enum):
        case = one.words[member] if language == "swift" else member
        text = {"c": one.c_case, "objc": one.objc_case}.get(language, lambda _: f"{outer}{between}{case}")(member)
    else:
        name = spelled(one.field(member), language)
        text = name if one is owner else f"{outer}{between}{name}"
    return f"``{text}``" if language == "swift" else f"`{text}`"


def sentence(api, language, text, owner, field=None):
    """The documentation in a language."""
    def replaced(match):
        key = match.group(1)
        if key == "none":
            if language == "swift":
                return "`nil` or 0" if field.none else "`nil`"
            if language == "objc":
                return "0" if field.none else "`nil`"
            if language == "c" and field.presence:
                return "a zeroed one"
            if language == "c" and field.has_flag:
                return f"no `has_{field.c}`"
            if field.none:
                return "0"
            return {"c": "`NULL`", "cxx": "none"}[language]
        if key in ("true", "false"):
            return {"objc": {"true": "`YES`", "false": "`NO`"}[key]}.get(language, f"`{key}`")
        if key.startswith("doc:"):
            return f" (<{key}>)" if language == "swift" else ""
        return reference(api, language, key, owner)
    return re.sub(r"\{([\w.:=]+)\}", replaced, text)


def documented(language, text, owner, field=None, indent=0):
    """The documentation in a language, as a comment."""
    prefix = "///" if language in ("objc", "swift") else "//"
    return comment(sentence(owner.api, language, text, owner, field), prefix, indent)


def quoted(name):
    return f'"{name}"'


def wrapped(text, width, subsequent=""):
    """Lines of a paragraph, without breaks inside of code."""
    unbreakable = re.sub(r"`[^`]*`", lambda match: match.group(0).replace(" ", "\0"), " ".join(text.split()))
    lines = textwrap.wrap(unbreakable, width, break_long_words=False, break_on_hyphens=False,
                          subsequent_indent=subsequent)
    return [line.replace("\0", " ") for line in lines]


def comment(text, prefix, indent=0):
    """Lines of a comment at this indentation: paragraphs are wrapped, lists and indented code are kept."""
    lines = []
    start = " " * indent + prefix
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if lines:
            lines.append(start)
        if block.startswith(("    ", "- ", "```")):
            lines += [f"{start} {line}".rstrip() for line in block.splitlines()]
            continue
        for part in re.split(r"\n(?=- )", block):
            width = 119 - len(start)
            lines += [f"{start} {line}" for line in wrapped(part, width, "  " if part.startswith("- ") else "")]
    return "\n".join(lines) + "\n"
