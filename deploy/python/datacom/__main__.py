"""Starts the program of the command's name: `datacom`, `datacom-actor`, ...; `python -m datacom` is `datacom`."""

import os
import shutil
import sys
from pathlib import Path

from datacom import _files


def main() -> None:
    """Replaces this process by the program. Raises FileNotFoundError when the package has no programs."""
    called = Path(sys.argv[0]).name
    name = called if called.startswith("datacom") else "datacom"
    if "DATACOM_FFMPEG" not in os.environ and shutil.which("ffmpeg") is None:
        try:
            import imageio_ffmpeg  # the extra "film"

            os.environ["DATACOM_FFMPEG"] = imageio_ffmpeg.get_ffmpeg_exe()
        except (ImportError, RuntimeError):
            pass  # the program says what is missing when it films
    rclone = Path(sys.executable).parent / "rclone"
    if "DATACOM_RCLONE" not in os.environ and rclone.is_file():  # the extra "archive"
        os.environ["DATACOM_RCLONE"] = str(rclone)
    os.environ.setdefault("DATACOM_PYTHON", sys.executable)  # for environments in Python
    program = str(_files.program(name))
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0
