#!/usr/bin/env python3
"""Tests of xcode_check.py: the repository's project is accepted, and every seeded fault is reported."""
import random
import re
import sys
import unittest

sys.dont_write_bytecode = True
import seeded_faults
from seeded_faults import PROJECT, SCHEME
from repository import Repository
from xcode_check import ROOT, check

REPOSITORY = Repository(ROOT)


def expanded(text):
    return re.sub("@([0-9A-F]{2})", r"4D4E4B0000000000000000\1", text)


def findings(texts):
    return check(REPOSITORY.seeding(texts))[0]


class XcodeCheckTests(unittest.TestCase):
    def refuses(self, texts, words):
        found = [f"{file}:{line}: {message}" for file, line, message in findings(texts)]
        self.assertTrue(any(expanded(words) in one for one in found), f"not refused with {words}, but with: {found}")

    def edited(self, file, old, new):
        text = REPOSITORY.text(file)
        self.assertIn(expanded(old), text, file)
        return text.replace(expanded(old), expanded(new), 1)

    def test_project_is_accepted(self):
        found, _, targets = check(REPOSITORY)
        self.assertEqual(found, [])
        self.assertEqual([target.name for target, _ in targets], [
            "MLXNativeKernels", "MLXNativeKernelsHost", "MLXNativeKernelsTests", "MLXNativeKernelsObjCTests",
            "MLXNativeKernelsCoreTests", "decode-demo", "JargonLM", "DecodeDemo",
        ])
        for target, _ in targets:
            self.assertTrue(target.compiled, target.name)

    def test_seeded_faults_are_reported(self):
        for file, edits in seeded_faults.EDITS.items():
            for old, new, words in edits:
                with self.subTest(file=file, old=old, new=new):
                    self.refuses({file: self.edited(file, old, new)}, words)
        for file, text, words in seeded_faults.TEXTS:
            with self.subTest(file=file, text=text):
                self.refuses({file: text}, words)

    def test_faults_in_two_files_are_reported(self):
        unlinked = self.edited(PROJECT, "@7E /* libMLXNativeKernelsHost.a in Frameworks */,\n", "")
        app = "Examples/DecodeDemo/DecodeDemoApp.swift"
        self.refuses(
            {PROJECT: unlinked, app: "import MLXNativeKernelsHost\n"},
            "DecodeDemoApp.swift:1: DecodeDemo does not link MLXNativeKernelsHost")
        plain = "Xcode/MLXNativeKernels.xctestplan"
        self.refuses({plain: REPOSITORY.text("Xcode/Checks.xctestplan")}, "(expected ['Default'])")

    def test_other_xml_is_accepted(self):
        for text in ['<?xml version="1.0"?>\n<a b = "c"/>', "<!-- b --><a>\n</a>"]:
            self.assertEqual(findings({SCHEME: text}), [], text)

    def test_findings_have_the_line_of_the_mistake(self):
        text = self.edited(PROJECT, "remoteInfo = JargonLM;", "remoteInfo = Jargon;")
        line = text[:text.index("remoteInfo = Jargon;")].count("\n")
        # Objects are reported at their first line.
        self.assertEqual([finding.line for finding in findings({PROJECT: text})], [line - 4])

    def test_garbage_is_refused_and_nothing_crashes(self):
        for text in seeded_faults.GARBAGE:
            self.assertTrue(findings({PROJECT: text}), text[:40])
        self.assertEqual(len(check(Repository("/nowhere"))[0]), 1)

    def test_damaged_projects_are_read(self):
        """Reading a project with a byte removed, or a truncated one, must terminate."""
        text = REPOSITORY.text(PROJECT).encode()
        generator = random.Random(1)
        for _ in range(60):
            damaged = bytearray(text)
            del damaged[generator.randrange(len(damaged))]
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
            if generator.random() < 0.5:
                del damaged[generator.randrange(len(damaged)):]
            findings({PROJECT: damaged.decode(errors="replace")})


if __name__ == "__main__":
    unittest.main()
