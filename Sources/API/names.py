"""The page of the documentation that lists the names of types and fields in each language."""

from model import Enum, Union

HEAD = """# Names in each language

How a type or a field of this package is called in Swift, C++, C and Objective-C.

## Overview

A type in a type is named after both; C and Objective-C run the words together. A field is `headDim` in C++, Objective-C
and Swift, and `head_dim` in C. A Boolean `isCausal` is the property `causal` with the getter `isCausal` in Objective-C.
C has `has_…` beside a field that may be left out, and `…_count` beside a list. Fields whose names follow this rule in
every language are not listed.

"""


def row(*cells):
    return "| " + " | ".join(f"`{cell}`" if cell else "" for cell in cells) + " |\n"


def swift(one):
    return one.swift if "swift" in one.languages else ""


def types(topic):
    text = f"### {topic.camel}\n\n| Swift | C++ | C | Objective-C |\n| --- | --- | --- | --- |\n"
    for one in topic.types:
        text += row(swift(one), one.cxx, one.c, one.objc)
        if isinstance(one, (Enum, Union)):
            continue
        for field in one.fields:
            names = (field.swift_name if swift(one) else "", field.name, field.c, field.objc)
            if field.exists_in("c") and not (field.swift_name == field.name and not field.inverse
                                             and field.objc in (field.name, field.name.removeprefix("is").lower())):
                text += row(*(f".{name}" if name else "" for name in names))
    return text + "\n"


def page(api):
    return HEAD + "".join(types(topic) for topic in api.topics)
