"""The Metal library functions that kernels may call, read from tables such as functions.tsv. The strict compile
declares exactly these, so the list and the check cannot disagree."""
import re
from collections import namedtuple

# `declaration` as in the table: float precise::exp(float); `variant`: precise, fast or empty; `name`: exp or
# as_type<float>; `parameters`: types, with ~ if arguments of other types convert implicitly.
Row = namedtuple("Row", "file line declaration result variant name parameters evidence precise_error fast_error")
# Declarations are marked as deprecated with this text and the row's index, so the compiler reports each use.
USE_MARK = "shader-check row "


class Mistake(Exception):
    """A table that cannot be parsed. Says what, got, expected and fix."""


def rows(*tables):
    """The rows of tables, by path."""
    found = []
    for path in tables:
        try:
            with open(path, encoding="utf-8") as file:
                found += parsed(file.read(), path)
        except OSError:
            raise Mistake(f"{path}: the table of functions cannot be read (expected a text file). Correct the path.")
    return found


def parsed(text, file):
    return [
        parsed_row(line, file, number) for number, line in enumerate(text.split("\n"), 1)
        if line.strip() and not line.startswith("#")
    ]


def parsed_row(line, file, number):
    columns = line.split("\t")
    if len(columns) != 4 or not all(columns):
        raise Mistake(
            f"{file}:{number}: a row has four nonempty columns, separated by tabs (got {len(columns)}: {line}). "
            "Write: declaration, evidence, precise error, fast error.")
    parts = re.fullmatch(r"(.*) (?:(\w+)::)?([^ ]+)\((.*)\)", columns[0])
    if not parts:
        raise Mistake(
            f"{file}:{number}: the first column is a declaration (got {columns[0]}, expected something like: "
            "float precise::exp(float)). Correct it.")
    result, variant, name, parameters = parts.groups(default="")
    parameters = parameters.split(", ") if parameters else []
    return Row(file, number, columns[0], result, variant, name, parameters, *columns[1:])


def used_row(message):
    """The index of the row whose use a compiler warning reports."""
    mark = re.search(USE_MARK + r"(\d+)", message)
    return int(mark[1]) if mark else None


def in_variant(row, declaration):
    return f"namespace {row.variant} {{ {declaration} }}\n" if row.variant else declaration + "\n"


def refusal(row):
    """A template without a body catches every call whose arguments do not have exactly the listed types, where C++
    would convert them and Metal, which has more overloads, would call another function."""
    exact = [f"typename A{index}" for index, type in enumerate(row.parameters) if not type.startswith("~")]
    types = [type[1:] if type.startswith("~") else f"A{index}" for index, type in enumerate(row.parameters)]
    if not exact or "<" in row.name:
        return ""
    return in_variant(row, f"template <{', '.join(exact)}> void {row.name}({', '.join(types)}) = delete;")


def header(rows):
    """The list as C++ declarations."""
    text = """#pragma once
namespace metal {
template <typename To, typename From> To as_type(From) = delete;
template <typename T, int columns, int rows>
simdgroup_matrix<T, columns, rows> make_filled_simdgroup_matrix(T) = delete;
"""
    for index, row in enumerate(rows):
        types = ", ".join(type.lstrip("~") for type in row.parameters)
        template = "template <> " if "<" in row.name else ""
        mark = f'__attribute__((deprecated("{USE_MARK}{index}")))'
        # Makes the compiler report a bad row at its table; 3 means a system header.
        text += f'# {row.line} "{row.file}" 3\n'
        text += in_variant(row, f"{template}{mark} {row.result} {row.name}({types});")
    return text + "".join(dict.fromkeys(map(refusal, rows))) + "}\nusing metal::as_type;\n"
