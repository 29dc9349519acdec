"""Preprocessed source as tokens, with the structure that the lint needs: brackets, declarations, functions."""
import re
from collections import namedtuple

Token = namedtuple("Token", "text kind file line")
# `parameters` and `body`: ranges of tokens; `at`: the index of the name.
Function = namedtuple("Function", "name parameters body is_member is_kernel at")

PATTERN = re.compile(r"""
    (?P<space>\s+)
    |(?P<string>"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)
    |(?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
    |(?P<word>\w+)
    |(?P<mark>::|->|&&|\|\||[=!<>+*/%&|^-]=|\+\+|--|<<|.)
""", re.X)
PAIRS = {"(": ")", "[": "]", "{": "}"}
STANDALONE = ("instantiate_kernel", "export_kernel")


def tokens(text, file, shown):
    """A line such as `# 12 "Kernels/Copy.metal"` gives the origin of what follows; `shown` abbreviates the path."""
    line = 0
    for content in text.split("\n"):
        line += 1
        if content.lstrip().startswith("#"):
            marker = re.match(r'# (\d+) "(.*)"', content)
            if marker:
                line, file = int(marker[1]) - 1, shown(marker[2])
            continue
        for match in PATTERN.finditer(content):
            if match.lastgroup != "space":
                yield Token(match[0], match.lastgroup, file, line)


class Source:
    def __init__(self, tokens):
        self.tokens = tokens
        self.all = [token.text for token in tokens]
        self.functions, self.derived = [], []
        # Declarations at file scope that are neither functions with a body nor types: variables, aliases, macros.
        self.statements = []
        self.closing = self._match_brackets()
        self.types = self._types()
        self._scan(range(len(tokens)), False)

    def text(self, index):
        return self.all[index] if 0 <= index < len(self.all) else ""

    def words(self, part):
        return self.all[part.start:part.stop]

    def close(self, index):
        """The bracket that closes the one at `index`, or the last token if it is not closed."""
        return self.closing.get(index, len(self.all) - 1)

    def inside(self, index):
        """The tokens between the bracket at `index` and the one that closes it."""
        return range(index + 1, max(self.close(index), index + 1))

    def parts(self, whole):
        """The parts of a range between commas outside brackets."""
        parts, start, index, angles = [], whole.start, whole.start, 0
        while index < whole.stop:
            text = self.text(index)
            if text in PAIRS:
                index = self.close(index)
            angles += (text == "<") - (text == ">")
            if text == "," and angles <= 0:
                parts.append(range(start, index))
                start = index + 1
            index += 1
        return parts + ([range(start, whole.stop)] if start < whole.stop else [])

    def close_angles(self, index):
        """The angle bracket that closes the one at `index`, or the last token if it is not closed."""
        angles = 0
        while index < len(self.all):
            text = self.text(index)
            if text in PAIRS:
                index = self.close(index)
            angles += (text == "<") - (text == ">")
            if angles == 0:
                return index
            index += 1
        return len(self.all) - 1

    def _match_brackets(self):
        open, closing = [], {}
        for index, text in enumerate(self.all):
            if text in PAIRS:
                open.append(index)
            elif open and text == PAIRS[self.all[open[-1]]]:
                closing[open.pop()] = index
        return closing

    def _types(self):
        """Names of structures, aliases, enumerations and type parameters."""
        types = set()
        for index, text in enumerate(self.all):
            if text in ("struct", "class", "union", "enum", "typename"):
                types.add(self.text(index + 1))
            elif text == "using" and self.text(index + 2) == "=":
                types.add(self.text(index + 1))
            elif text == "typedef" and ";" in self.all[index:]:
                types.add(self.text(self.all.index(";", index) - 1))
        return types

    def _scan(self, scope, is_member):
        """Splits a scope into declarations."""
        start = index = scope.start
        while index < scope.stop:
            text = self.text(index)
            if index == start and text in STANDALONE and self.text(index + 1) == "(":
                index = self.close(index + 1) + 1
                self.statements.append(range(start, index))
                start = index
                continue
            if text in ("(", "["):
                index = self.close(index)
            elif text == ";":
                if start < index and not is_member:
                    self.statements.append(range(start, index))
                start = index + 1
            elif text == "{":
                ends = self._take_body(range(start, index), index, is_member)
                index = self.close(index)
                start = index + 1 if ends else start
            index += 1

    def _take_body(self, head, brace, is_member):
        """Whether a declaration ends with the body that opens at `brace`; the initializer of a variable does not."""
        inside, words = self.inside(brace), self.words(head)
        if "namespace" in words:
            self._scan(inside, is_member)
            return True
        list = self._parameter_list(head)
        if list is not None:
            name, parameters = self.text(list - 1), self.parts(self.inside(list))
            is_kernel = "kernel" in self.all[head.start:list]
            self.functions.append(Function(name, parameters, inside, is_member, is_kernel, list - 1))
            return True
        if "enum" in words:
            return False
        for record in head:
            before = self.all[head.start:record]
            if self.text(record) in ("struct", "class", "union") and before.count("<") <= before.count(">"):
                if ":" in self.all[record:brace]:
                    self.derived.append(record)
                self._scan(inside, True)
                break
        return False

    def _parameter_list(self, head):
        """The opening bracket of a function's parameters, as in `name ( … )` and optional words, or None."""
        index, found = head.start, None
        while index < head.stop:
            text = self.text(index)
            if text == "template" and self.text(index + 1) == "<":
                index = self.close_angles(index + 1)
            elif text == "=":
                return None
            elif text == "[":
                index = self.close(index)
            elif text == "(":
                follows_word = index > head.start and self.tokens[index - 1].kind == "word"
                if found is None and (follows_word or "operator" in self.all[head.start:index]):
                    found = index
                index = self.close(index)
            index += 1
        return found
