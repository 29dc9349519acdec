"""Shows a changed file to the compiler that the Host device runs: kernels are compiled at run time, so nothing is
rebuilt, and the tree stays unchanged."""
import os
import shlex
import shutil

from common import OUT, write_if_changed

COMPILER = """#!/bin/sh
exec {compiler} -ivfsoverlay {overlay} "$@"
"""
OVERLAY = """{{"version": 0, "use-external-names": false, "roots": [{{"type": "directory", "name": "{folder}",
  "contents": [{{"type": "file", "name": "{name}", "external-contents": "{changed}"}}]}}]}}
"""


class Overlay:
    """A changed copy of one file. Its paths stay the same between runs, so that a compiler cache knows them."""

    def __init__(self, name: str, path: str):
        self.folder = f"{OUT}/overlays/{name}"
        self.changed = f"{self.folder}/changed.metal"
        overlay, wrapper = f"{self.folder}/overlay.yaml", f"{self.folder}/bin/clang++"
        text = OVERLAY.format(folder=os.path.dirname(path), name=os.path.basename(path), changed=self.changed)
        write_if_changed(overlay, text.encode())
        compiler = shutil.which("clang++") or "clang++"
        script = COMPILER.format(compiler=shlex.quote(compiler), overlay=shlex.quote(overlay))
        write_if_changed(wrapper, script.encode())
        os.chmod(wrapper, 0o755)

    def show(self, text: str):
        write_if_changed(self.changed, text.encode())

    def environment(self) -> dict[str, str]:
        """The device finds its compiler in PATH. Under full checking, it compiles every kernel."""
        return {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "MNK_HOST_CHECKING": "full"}
