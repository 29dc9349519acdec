"""An Xcode project as objects."""
import re

from repository import Finding, clean

# Old-style property lists, the format of project.pbxproj. Libraries that read them keep no line numbers, and silently
# drop one of two objects with the same identifier.
TOKEN = re.compile(
    r"(?:\s+|//[^\n]*|/\*.*?\*/)*"
    r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<open>"|/\*)|(?P<word>[A-Za-z0-9_$/:.-]+)|(?P<mark>.)|(?P<end>\Z))', re.S)
# More than Xcode ever writes; without a limit, a malicious text could exhaust the stack.
DEEPEST = 64


class Text(str):
    """A string with the line where it begins, as lists and tables have it."""


class List(list):
    pass


class Table(dict):
    """Its keys are Texts."""


class Mistake(Exception):
    def __init__(self, line, message):
        super().__init__(message)
        self.line = line


def at(line, value):
    value.line = line
    return value


class Reader:
    def __init__(self, text):
        self.tokens = self.scan(text)
        self.twice = []  # keys that a table has already, each with its first
        self.advance()

    def scan(self, text):
        position, line = 0, 1
        while True:
            token = TOKEN.match(text, position)
            line += text.count("\n", position, token.start(token.lastgroup))
            yield token.lastgroup, token.group(token.lastgroup), line
            line += text.count("\n", token.start(token.lastgroup), token.end())
            position = token.end()

    def advance(self):
        self.kind, self.token, self.line = next(self.tokens)
        if self.kind == "open":
            raise Mistake(self.line, f"what begins with {self.token} does not end. Add its end.")

    def expected(self, what):
        got = "the end of the file" if self.kind == "end" else f'"{self.token}"'
        return Mistake(self.line, f"{what} is missing (got {got}). Add it.")

    def takes(self, mark):
        if (self.kind, self.token) != ("mark", mark):
            return False
        self.advance()
        return True

    def take(self, mark):
        if not self.takes(mark):
            raise self.expected(f'"{mark}"')

    def whole(self):
        value = self.value(0)
        if self.kind != "end":
            raise Mistake(self.line, "the text goes on after its end. Remove the rest.")
        return value

    def value(self, depth):
        if depth > DEEPEST:
            raise Mistake(self.line, f"values are nested more than {DEEPEST} deep. Flatten them.")
        line = self.line
        if self.takes("{"):
            table = at(line, Table())
            while not self.takes("}"):
                key = self.word()
                self.take("=")
                self.twice += [(key, first) for first in table if first == key]
                table[key] = self.value(depth + 1)
                self.take(";")
            return table
        if self.takes("("):
            values = at(line, List())
            while not self.takes(")"):
                values.append(self.value(depth + 1))
                if not self.takes(","):
                    self.take(")")
                    break
            return values
        return self.word()

    def word(self):
        if self.kind not in ("word", "quoted"):
            raise self.expected("a word")
        word = at(self.line, Text(re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], self.token, flags=re.S)))
        self.advance()
        return word


class Object:
    def __init__(self, id, fields):
        self.id, self.line, self.isa, self.fields = id, id.line, fields["isa"], fields

    def text(self, key):
        value = self.fields.get(key)
        return value if isinstance(value, Text) else None

    def texts(self, key):
        value = self.fields.get(key)
        return [one for one in value if isinstance(one, Text)] if isinstance(value, List) else []

    def table(self, key):
        value = self.fields.get(key)
        return value if isinstance(value, Table) else {}

    @property
    def name(self):
        return self.text("name") or self.id


class Project:
    """Each error in the text is a finding, and the rest is still read."""

    def __init__(self, text, path):
        self.path = path
        self.folder = clean(f"{path}/../..")  # paths of the project are relative to it
        self.container = "container:" + path.split("/")[-2]  # its name in schemes and test plans
        self.objects, self.root, self.findings = {}, None, []
        try:
            reader = Reader(text)
            self._read(reader.whole())
            for key, first in reader.twice:
                self._add(key.line, f"{key} is defined twice, first in line {first.line}. Rename or remove one.")
        except Mistake as mistake:
            self._add(mistake.line, str(mistake))

    def _add(self, line, message):
        self.findings.append(self.finding(line, message))

    def finding(self, line, message):
        return Finding(self.path, line, message)

    def _read(self, value):
        if not isinstance(value, Table) or not isinstance(value.get("objects"), Table):
            return self._add(1, "the project has no table of objects. Add it.")
        version = value.get("objectVersion", at(1, Text("not set")))
        if version != "77":
            self._add(version.line, f"objectVersion is {version} (expected 77, Xcode 16). Set it.")
        for id, fields in value["objects"].items():
            if not re.fullmatch("[0-9A-Fa-f]{24}", id):
                self._add(id.line, f"{id} is not an identifier (expected 24 hexadecimal digits). Correct it.")
            if not isinstance(fields, Table) or not isinstance(fields.get("isa"), Text):
                self._add(id.line, f"{id} has no isa. Add its class.")
                continue
            self.objects[id] = Object(id, fields)
        root = value.get("rootObject", at(1, Text("not set")))
        self.root = self.objects.get(root) if isinstance(root, Text) else None
        if not self.root or self.root.isa != "PBXProject":
            self.root = None
            self._add(root.line, f"rootObject is {root} (expected the identifier of a PBXProject). Correct it.")

    def all(self, *classes):
        return [one for one in self.objects.values() if one.isa in classes]

    def named(self, owner, key):
        """The objects that a key of another one names."""
        ids = [owner.text(key)] if owner.text(key) else owner.texts(key)
        return [self.objects[id] for id in ids if id in self.objects]

    def first(self, owner, key):
        return next(iter(self.named(owner, key)), None)

    @property
    def targets(self):
        return [one for one in self.named(self.root, "targets") if one.isa == "PBXNativeTarget"]

    @property
    def configurations(self):
        """Names of the project's configurations."""
        list = self.first(self.root, "buildConfigurationList")
        return [one.text("name") for one in self.named(list, "buildConfigurations")] if list else []
