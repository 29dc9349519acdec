#!/usr/bin/env python3
"""Tests of shader_check.py: every text in Rejected is refused for its fault, and the texts in Accepted are accepted.
With MNK_TEST_FULL, which `make check` sets, also that each row of the list of functions is needed."""
import glob
import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import functions
from compilers import FOLDER, METAL_COMPAT, ROOT, Failure, Host
from lint import TWO_VARIANTS
from shader_check import FUNCTIONS, TEST_FUNCTIONS, Checker, concurrently

FULL = "MNK_TEST_FULL" in os.environ
ONE_SHADER = f"{ROOT}/Shaders/KVCacheWrite/KVCacheWrite.metal"
KERNEL = "kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]])"
ACCEPTED = sorted(glob.glob(f"{FOLDER}/Accepted/*.metal"))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rejected(folder):
    """Writes the texts of Rejected as files in a folder: by path, their heads."""
    found = {}
    for table in glob.glob(f"{FOLDER}/Rejected/*.txt"):
        for section in read(table).split("\n\n")[1:]:
            head, text = re.fullmatch(r"((?://.*\n)+)((?s:.*))", section).groups()
            text = text.replace("KERNEL", KERNEL) if re.search("KERNEL|kernel ", text) else f"{KERNEL} {{\n{text}\n}}\n"
            export = "" if "instantiate_kernel" in text else "\nexport_kernel(k)"
            path = f"{folder}/{re.match('// (.*?),', head)[1]}.metal"
            with open(path, "w", encoding="utf-8") as file:
                file.write(f'#include "{METAL_COMPAT}"\n{text}{export}\n')
            found[path] = head
    return found


class SeededTextTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.rejected = rejected(folder.name)
        # These sources may use every function of both lists.
        self.checker = Checker(functions.rows(FUNCTIONS, TEST_FUNCTIONS))

    def test_rejected_texts_are_refused_for_their_faults(self):
        self.assertGreater(len(self.rejected), 80)
        for (path, head), report in zip(self.rejected.items(), self.checker.check_each(self.rejected)):
            expected = re.findall(r"(compile|list|lint): (.*)", head)
            self.assertTrue(expected, f"{head} does not say what refuses it")
            for checker, words in expected:
                found = [one for one in report.findings if one.checker == checker and words in one.message]
                self.assertTrue(found, f"{head} was refused with {report.findings}")
            for finding in report.findings:
                is_expected = any(one == finding.checker and words in finding.message for one, words in expected)
                self.assertTrue(is_expected, f"{head} was also refused with {finding}")
                self.assertEqual(finding.file, path)
                self.assertGreater(finding.line, 1)

    def test_accepted_texts_are_accepted(self):
        self.assertTrue(ACCEPTED)
        for path, report in zip(ACCEPTED, self.checker.check_each(ACCEPTED)):
            self.assertEqual(report.findings, [])
            # A source that was parsed wrongly may lose some of its kernels, and then its findings.
            exports = re.findall(r"^(?:export|instantiate)_kernel\(", read(path), re.M)
            self.assertTrue(exports, path)
            self.assertEqual(len(report.exports), len(exports), path)

    def test_host_compile_answers_as_noted(self):
        noted = {**self.rejected, **{path: read(path) for path in ACCEPTED}}
        for (path, head), accepts in zip(noted.items(), concurrently(Host().accepts, noted)):
            self.assertIn(f"host {'accepts' if accepts else 'refuses'}", head, path)


class ShaderCheckTests(unittest.TestCase):
    def setUp(self):
        self.rows = functions.rows(FUNCTIONS)

    @unittest.skipUnless(FULL, "make check runs this, and make shaders checks all shaders")
    def test_shipped_shaders_are_accepted(self):
        checker = Checker(self.rows)
        report = checker.check(glob.glob(f"{ROOT}/Shaders/*/*.metal") + glob.glob(f"{ROOT}/Shaders/*/*.h"))
        self.assertEqual(report.findings + checker.unused_rows(report), [])
        self.assertGreaterEqual(len(report.exports), 10)
        self.assertEqual(len(set(report.exports)), len(report.exports), "two kernels share a name")

    @unittest.skipUnless(FULL, "make check runs this")
    def test_every_row_of_the_list_is_needed(self):
        """Without it, kernels are refused."""
        kernels = sorted(glob.glob(f"{ROOT}/Shaders/*/*.metal"))
        # Without a row, a kernel that uses it fails; one with few other functions compiles fast.
        reports = zip(kernels, Checker(self.rows).check_each(kernels))
        users = sorted(((report.used, kernel) for kernel, report in reports), key=lambda user: len(user[0]))
        for index, row in enumerate(self.rows):
            kernel = next((kernel for used, kernel in users if index in used), None)
            self.assertTrue(kernel, f"no kernel uses {row.declaration}")
            findings = Checker(self.rows[:index] + self.rows[index + 1:]).check([kernel]).findings
            self.assertIn("list", [one.checker for one in findings], f"{row.declaration} is not needed")

    def test_an_unused_row_is_reported(self):
        rows = self.rows + functions.parsed("float precise::tan(float)\tMSL 6.5\t6 ulp\t-\n", "more.tsv")
        checker = Checker(rows)
        report = checker.check([ONE_SHADER])
        unused = checker.unused_rows(report)
        self.assertTrue(report.used)
        self.assertEqual(len(unused), len(rows) - len(report.used))
        self.assertEqual(unused[-1][:2], ("more.tsv", 1))
        self.assertIn("no kernel uses float precise::tan(float)", unused[-1].message)

    def test_tables_say_what_is_wrong_with_a_row(self):
        for row, words in [
            ("float precise::exp(float)\tMSL 6.5\n", "four nonempty columns"),
            ("precise::exp\tMSL 6.5\t4 ulp\t-\n", "is a declaration"),
            ("float precise::exp(float)\t\t4 ulp\t-\n", "four nonempty columns"),
        ]:
            with self.assertRaisesRegex(functions.Mistake, f"^bad.tsv:2: .*{words}"):
                functions.parsed("# comment\n" + row, "bad.tsv")
        with self.assertRaises(functions.Mistake):
            functions.rows("nowhere.tsv")

    def test_the_compiler_reports_a_bad_row_at_its_table(self):
        rows = functions.parsed("# comment\nflaot precise::tan(float)\tMSL 6.5\t6 ulp\t-\n", "bad.tsv")
        found = [one[:3] for one in Checker(rows).check([ONE_SHADER]).findings]
        self.assertIn(("bad.tsv", 2, "unknown type name 'flaot'"), found)

    def test_exported_names_are_whole_names(self):
        """The names under which a Mac finds the kernels, with macros expanded."""
        self.assertLessEqual(
            {"kvCacheMove_16", "kvCacheConvert_bf16_f16"}, set(Checker(self.rows).check([ONE_SHADER]).exports))

    def test_a_missing_file_is_a_finding(self):
        findings = Checker([]).check(["nowhere.metal"]).findings
        self.assertEqual([one[:2] for one in findings], [("nowhere.metal", 1)])
        self.assertIn("no such file", findings[0].message)

    def test_a_missing_compiler_is_named(self):
        with self.assertRaisesRegex(Failure, "no-such-clang"):
            Checker([], "no-such-clang")

    def test_words_become_metal(self):
        """The strict compile and the lint replace the macros of MetalCompat.h; this checks what a Mac sees."""
        cases = {
            "threadgroup_array(float, s, 32);": "threadgroup float s[32];",
            "threadgroup float* s [[threadgroup_memory(0)]]": "threadgroup float* s [[threadgroup(0)]]",
            "pipeline_constant(bool, hasMask, 3);": "constant bool hasMask [[function_constant(3)]];",
            'instantiate_kernel("k_f16", k, half, 4)':
                'template [[host_name("k_f16")]] [[kernel]] decltype(k<half, 4>) k<half, 4>;',
            "export_kernel(fill)": "",
        }
        expanded = Checker([]).strict.words_as_metal(cases)
        self.assertEqual(["".join(one.split()) for one in expanded], ["".join(one.split()) for one in cases.values()])


class FunctionErrorTests(unittest.TestCase):
    """The errors in the tables: each function has one, which matches the Host device's perturbation."""

    rows = functions.rows(FUNCTIONS, TEST_FUNCTIONS)

    def test_every_variant_has_an_error_and_evidence(self):
        for row in self.rows:
            self.assertNotEqual(row.fast_error if row.variant == "fast" else row.precise_error, "-", row)
            self.assertRegex(row.evidence, "MSL |seen", row)

    def test_no_row_is_bare(self):
        """A function whose error depends on compiler flags does not belong in a table."""
        for row in self.rows:
            self.assertTrue(row.variant or row.name not in TWO_VARIANTS, f"{row}: write precise:: or fast::")

    def test_errors_agree_with_the_host_device(self):
        bound = r"(\w+(?:\([^)]*\))?)"
        text = read(f"{ROOT}/Sources/MLXNativeKernelsHost/MetalStdlib/Accuracy.h")
        bounds = {name: errors for name, *errors in re.findall(rf'\{{"(\w+)", {bound}, {bound}, {bound}\}}', text)}
        self.assertGreater(len(bounds), 30)
        compared = 0
        for row in self.rows:
            for error, bound in zip((row.precise_error, row.fast_error), bounds.get(row.name, [])):
                if error != "-":
                    message = f"{row.declaration}: the table says {error}, Accuracy.h says {bound}"
                    self.assertTrue(self.agree(error, bound), message)
                    compared += 1
        self.assertGreater(compared, 10)

    @staticmethod
    def agree(error, bound):
        kind, number = re.match(r"(\w+)(?:\((?:0x1p)?([-\d.]+))?", bound).groups()
        return {
            "kExact": error in ("exact", "correctly rounded"), "ulps": error.startswith(f"{number} ulp"),
            "growingUlps": error == f"{number} + floor(2|x|) ulp", "within": error.startswith(f"2^{number} absolute"),
            "kFormula": error.startswith("as "),
        }[kind]


if __name__ == "__main__":
    unittest.main()
