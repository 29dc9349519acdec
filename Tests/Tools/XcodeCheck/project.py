"""An Xcode project as objects. Its format is that of old-style property lists."""
import re

from repository import Finding, clean

TOKEN = re.compile(
    r"(?:\s+|//[^\n]*|/\*.*?\*/)*"
    r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<word>[A-Za-z0-9_$/:.-]+)|(?P<mark>.)|(?P<end>\Z))', re.S)
# More than Xcode ever writes; deeper texts would exhaust the stack.
DEEPEST = 64


class Mistake(Exception):
    def __init__(self, line, message):
        super().__init__(message)
        self.line = line


class Reader:
    def __init__(self, text):
        self.text, self.position, self.lines = text, 0, {}
        self.advance()

    def advance(self):
        token = TOKEN.match(self.text, self.position)
        self.kind, self.token = token.lastgroup, token.group(token.lastgroup)
        self.start, self.position = token.start(token.lastgroup), token.end()

    def line(self):
        return self.text.count("\n", 0, self.start) + 1

    def takes(self, mark):
        if (self.kind, self.token) != ("mark", mark):
            return False
        self.advance()
        return True

    def take(self, mark):
        if not self.takes(mark):
            raise Mistake(self.line(), f'"{mark}" is missing. Add it.')

    def whole(self):
        value = self.value(0)
        if self.kind != "end":
            raise Mistake(self.line(), "the text goes on after its end. Remove the rest.")
        return value

    def value(self, depth):
        if depth > DEEPEST:
            raise Mistake(self.line(), f"values are nested more than {DEEPEST} deep. Flatten them.")
        if self.takes("{"):
            table = {}
            while not self.takes("}"):
                line, key = self.line(), self.word()
                if key in table:
                    raise Mistake(line, f"{key} is defined twice. Rename or remove one.")
                self.lines.setdefault(key, line)
                self.take("=")
                table[key] = self.value(depth + 1)
                self.take(";")
            return table
        if self.takes("("):
            values = []
            while not self.takes(")"):
                values.append(self.value(depth + 1))
                if not self.takes(","):
                    self.take(")")
                    break
            return values
        return self.word()

    def word(self):
        if self.kind not in ("word", "quoted"):
            raise Mistake(self.line(), "a word is missing. Add it.")
        word = re.sub(r"\\(.)", r"\1", self.token, flags=re.S)
        self.advance()
        return word


class Object:
    def __init__(self, id, line, fields):
        self.id, self.line, self.isa, self.fields = id, line, fields.get("isa"), fields

    def text(self, key):
        value = self.fields.get(key)
        return value if isinstance(value, str) else None

    def texts(self, key):
        """The strings of a list, or the one string."""
        value = self.fields.get(key)
        return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]

    @property
    def name(self):
        return self.text("name") or self.id


class Project:
    def __init__(self, text, path):
        """Raises Mistake if the text is not a project."""
        self.path = path
        self.folder = clean(f"{path}/../..")  # paths of the project are relative to it
        reader = Reader(text)
        value = reader.whole()
        objects = value.get("objects") if isinstance(value, dict) else None
        if not isinstance(objects, dict) or not all(isinstance(fields, dict) for fields in objects.values()):
            raise Mistake(1, "the project has no table of objects. Add it.")
        if value.get("objectVersion") != "77":
            raise Mistake(1, f"objectVersion is {value.get('objectVersion')} (expected 77, Xcode 16). Set it.")
        self.objects = {id: Object(id, reader.lines[id], fields) for id, fields in objects.items()}
        self.root = self.objects.get(str(value.get("rootObject")))
        if not self.root or self.root.isa != "PBXProject":
            raise Mistake(1, "rootObject is not the identifier of a PBXProject. Correct it.")
        self.targets = [one for one in self.named(self.root, "targets") if one.isa == "PBXNativeTarget"]

    def finding(self, object, message):
        return Finding(self.path, object.line, message)

    def all(self, *classes):
        return [one for one in self.objects.values() if one.isa in classes]

    def named(self, owner, key):
        """The objects that a key of another one names."""
        return [self.objects[id] for id in owner.texts(key) if id in self.objects]

    def first(self, owner, key):
        return next(iter(self.named(owner, key)), None)
