"""Runs clang: the strict compile of kernel source, its preprocessing for the lint, and the Host device's compile."""
import itertools
import os
import re
import shutil
import subprocess
import tempfile
import weakref
from collections import namedtuple

import functions
from lint import CLASSIFIERS, COUNTS, POSITIONS, TWO_VARIANTS

ROOT = os.path.dirname(os.path.abspath(__file__)).rsplit("/", 3)[0]
FOLDER = f"{ROOT}/Tests/Tools/ShaderCheck"
HEADERS = f"{FOLDER}/Headers"
METAL_COMPAT = f"{ROOT}/Shaders/Common/MetalCompat.h"
# Metal 3.1, the version of the oldest supported systems, and Metal 3.2, which enables code that is conditional on it.
VERSIONS = OLDEST, NEWEST = "-D__METAL_VERSION__=310", "-D__METAL_VERSION__=320"
METAL_HEADERS = """
    metal_stdlib metal_math metal_common metal_integer metal_relational metal_geometric metal_simdgroup
    metal_simdgroup_matrix metal_atomic metal_compute
""".split()
# Macros of MetalCompat.h that the lint reads.
KEPT_WORDS = "threadgroup_array threadgroup_memory pipeline_constant instantiate_kernel export_kernel".split()

# A reason why Apple's compiler might refuse a source, or interpret it differently than the Host device. The checker is
# `compile`, the strict compile; `list`, the list of functions; or `lint`, the token rules.
Finding = namedtuple("Finding", "file line message checker")

ADVICE = {
    "use of undeclared identifier":
        "If it is a function of Metal's library, add a row with its evidence to the list of functions.",
    "in namespace 'metal": "If it is a function of Metal's library, add a row with its evidence to the list.",
    "cannot be declared in local address space": "Write threadgroup_array(type, name, count) in the kernel.",
    "requires cl_khr_fp64": "Metal has no double.",
    "incompatible operand types ('__private": "Write both sides as values: float4(v).",
    "from 'bfloat' (aka '__bf16') to 'half'": "Convert to float first.",
    "in address space '__constant' to object in address space '__generic'":
        "A structure cannot be copied from constant memory as a whole here: copy its members.",
}


class Failure(Exception):
    pass


def shown(path):
    """Without `..`, and relative to the repository if inside it."""
    path = os.path.normpath(path)
    return path[len(ROOT) + 1:] if path.startswith(ROOT + "/") else path


class Clang:
    def __init__(self, requested=None):
        # The Swift toolchain's clang comes first on PATH and has the C++-for-OpenCL mode, so nothing needs to be
        # installed. If there is no program named clang, a distribution's versioned one is used.
        names = [requested] if requested else ["clang", "clang-21", "clang-20", "clang-19"]
        self.path = next(filter(None, map(shutil.which, names)), None)
        if not self.path:
            raise Failure(
                f"no clang for the strict compile (found none of {', '.join(names)} on PATH, expected clang 19 or "
                "newer). Install one, or name it: --clang PATH.")
        self.temporary = tempfile.mkdtemp(prefix="shader-check-")
        weakref.finalize(self, shutil.rmtree, self.temporary)

    def run(self, *arguments):
        return subprocess.run(
            [self.path, *arguments], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)

    def write(self, name, text):
        """Writes a file to the temporary folder, which lives as long as this object."""
        path = os.path.join(self.temporary, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


def swizzles():
    """`STRICT_SWIZZLES_2` to `_4`: members such as `Swizzle<vec<T, 2>, true> xy;`."""
    text = ""
    for count in (2, 3, 4):
        text += f"#define STRICT_SWIZZLES_{count}"
        for letters, length in itertools.product(("xyzw", "rgba"), (2, 3, 4)):
            for name in map("".join, itertools.product(letters[:count], repeat=length)):
                text += f" Swizzle<vec<T, {length}>, {int(len(set(name)) == length)}> {name};"
        text += "\n"
    return text


class Strict:
    """Compiles kernel source in clang's C++-for-OpenCL mode, which has real address spaces, against Headers and
    generated headers: the functions of the list, the swizzles, built-in values, and Metal's header names."""

    def __init__(self, rows, clang=None):
        self.rows, self.clang = rows, Clang(clang)
        self.declarations = os.path.dirname(self.clang.write("declarations/Swizzles.h", swizzles()))
        self.clang.write("declarations/Functions.h", functions.header(rows))
        attributes = (f'#define {name} clang::annotate("built-in")\n' for name in sorted(POSITIONS | COUNTS))
        self.clang.write("declarations/BuiltIns.h", "".join(attributes))
        # Metal's header names as empty files, for the lint, which reads only the kernel source.
        self.keep = self.clang.write("empty/KeepWords.h", "".join(f"#undef {word}\n" for word in KEPT_WORDS))
        self.empty = os.path.dirname(self.keep)
        parts = "".join(f'#include "{name}.h"\n' for name in ("Swizzles", "Vectors", "SimdgroupMatrix", "Functions"))
        for name in METAL_HEADERS:
            self.clang.write(f"declarations/{name}", "#pragma once\n" + parts)
            self.clang.write(f"empty/{name}", "#pragma once\n")

    def preprocessed(self, file):
        """The text that a Mac's compiler would read, without Metal's headers."""
        return self.clang.run(
            "-E", "-x", "c++", "-std=c++14", "-nostdinc", NEWEST, "-Wno-everything", "-isystem", self.empty, "-include",
            METAL_COMPAT, "-include", self.keep, file).stdout

    def words_as_metal(self, lines):
        """Lines of source as Metal's compiler sees them, with the macros of Shaders/Common/MetalCompat.h expanded."""
        text = f'#include "{METAL_COMPAT}"\n' + "".join(f"line_begins {line}\n" for line in lines)
        file = self.clang.write("empty/Lines.metal", text)
        output = self.clang.run("-E", "-P", "-x", "c++", OLDEST, "-isystem", self.empty, file).stdout
        return output.split("line_begins")[1:]

    def check(self, file):
        """The findings of both versions, and the indices of the list's rows that the source uses."""
        (findings, used), (more_findings, more_used) = (self._check(file, version) for version in VERSIONS)
        return findings | more_findings, used | more_used

    def _check(self, file, version):
        output = self.clang.run(
            "-x", "clcpp", "-cl-std=clc++2021", "-fsyntax-only", "-nostdinc", version,
            # Disables OpenCL's functions, double, and variables at file scope other than constants.
            "-cl-no-stdinc", "-Xclang",
            "-cl-ext=-cl_khr_fp64,-__opencl_c_fp64,-__opencl_c_device_enqueue,"
            "-__opencl_c_program_scope_global_variables",
            # Metal 3 is C++14. Uses of the list are reported as deprecated.
            "-Wno-everything", "-Wdeprecated-declarations", "-Werror=pre-c++17-compat",
            # The lint checks attributes.
            "-Werror=ignored-attributes", "-Werror=return-type", "-Werror=uninitialized", "-Werror=array-bounds",
            "-Werror=shift-count-overflow", "-Werror=vla", "-Werror=c++20-extensions", "-Werror=c++20-designator",
            "-Werror=c99-designator", "-Werror=unused-label", "-Werror=gnu-label-as-value", "-fno-color-diagnostics",
            "-fno-caret-diagnostics", "-ferror-limit=0", "-fno-elide-type", "-isystem", self.declarations, "-isystem",
            HEADERS, "-include", METAL_COMPAT, "-include", f"{HEADERS}/MetalCompat.h", file)
        # Each error and warning with the notes that follow it.
        diagnostics = []
        for match in re.finditer(r"^(.+?):(\d+):\d+: (note|warning|error|fatal error): (.*)$", output.stderr, re.M):
            if match[3] != "note":
                diagnostics.append([])
            if diagnostics:
                diagnostics[-1].append(match)
        findings, used = set(), set()
        for first, *notes in diagnostics:
            row = functions.used_row(first[4])
            if row is not None:
                used.add(row)
            elif first[3].endswith("error"):
                findings |= self._finding(first, notes)
        if output.returncode and not any(first[3].endswith("error") for first, *_ in diagnostics):
            message = f"clang failed: {(output.stderr.splitlines() or ['without output'])[-1]}"
            findings.add(Finding(shown(file), 1, message, "compile"))
        # A refused call has no value, which causes follow-up errors.
        refused = {(one.file, one.line) for one in findings if one.checker == "list"}
        return {one for one in findings if one.checker == "list" or (one.file, one.line) not in refused}, used

    def _finding(self, first, notes):
        message = first[4]
        # The lint reports these in more detail.
        missing = re.match(r"(?:use of undeclared identifier|no member named) '(\w+)'", message)
        if missing and missing[1] in TWO_VARIANTS | CLASSIFIERS and "in namespace 'metal::" not in message:
            return set()
        # The location in the kernel source, even if the error is in one of this tool's headers.
        ours = (self.declarations, HEADERS)
        place = next((one for one in (first, *notes) if not one[1].startswith(ours)), first)
        call = re.search(r"call to deleted function '(?:as_type<)?([^'<]*)", message)
        if call:
            checker, message = "list", self._not_listed(call[1], notes)
        else:
            message = re.sub(r" \[-Werror,[^\]]*\]$|; did you mean .*", "", message)
            said = "\n".join([message] + [note[4] for note in notes])
            is_of_library = "undeclared identifier" in message or "in namespace 'metal" in message
            checker = "list" if is_of_library else "compile"
            message = ". ".join([message] + [advice for sign, advice in ADVICE.items() if sign in said])
        return {Finding(shown(place[1]), int(place[2]), message, checker)}

    def _not_listed(self, name, notes):
        got = next((found[1] for found in (re.search(r"\[with (.*)\]", note[4]) for note in notes) if found), "others")
        listed = " or ".join(row.declaration for row in self.rows if row.name.partition("<")[0] == name)
        return (
            f"{name} is not on the list for these types (got {got}, expected {listed}). Convert the arguments, or add "
            "a row with its evidence.")


class Host:
    """The Host device's compile, which treats kernel source as C++20. It refuses much of what the strict compile and
    the lint refuse, earlier and in every build."""

    def __init__(self):
        self.clang = Clang()
        # The device's Metal library is compiled once for all sources.
        header = self.clang.write("MetalStdlib.h", """#define MNK_HOST_LIBRARY "seeded"
#define MNK_HOST_LEVEL MNK_HOST_BASELINE
#include "HostKernels.h"
""")
        self.flags = ["-std=c++20", "-I", f"{ROOT}/Sources/MLXNativeKernelsHost"]
        output = self.clang.run("-x", "c++-header", *self.flags, header, "-o", header + ".pch")
        if output.returncode:
            raise Failure(f"the Host device's Metal library does not compile: {output.stderr}")
        self.flags = ["-x", "c++", *self.flags, "-fsyntax-only", "-include-pch", header + ".pch"]

    def accepts(self, file):
        text = f'MNK_HOST_KERNELS_BEGIN\n#include "{os.path.abspath(file)}"\nMNK_HOST_KERNELS_END\n'
        unit = self.clang.write(f"{os.path.abspath(file).replace('/', '_')}.cpp", text)
        return self.clang.run(*self.flags, unit).returncode == 0
