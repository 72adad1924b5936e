"""Builds for 64-bit ARM on an x86-64 machine with Debian, for the scripts policy_library_aarch64 and wheel.

Each step is that of a build folder for its own program or library, with a compiler for ARM: the Debian package g++-aarch64-linux-gnu. Its
libraries come from the machine's Debian mirror, into OUT/sysroot, once. Headers that are the same for every processor may come from the
machine. Compiles only what has changed.
"""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = "aarch64-linux-gnu"
POLICY = "lib/libdatacom_policy.so.1.1.0"
COMPILERS = {"cc": "gcc", "c++": "g++"}
OF_POLICIES = ["libprotobuf-dev", "libabsl-dev", "libspdlog-dev", "libisal-dev", "libgmock-dev"]
OF_PROGRAMS = [*OF_POLICIES, "libgrpc++-dev", "libprometheus-cpp-core1.0", "libmuparser-dev", "libfreetype-dev", "libsimde-dev"]
FOLDERS = [f"usr/lib/{TARGET}", f"lib/{TARGET}", "mujoco/lib"]  # of the sysroot's libraries
RUN_PATHS = {"lib": "$ORIGIN", "tests": "$ORIGIN/..", "bin": "$ORIGIN/../lib"}  # of libraries, also of those that these load


def fail(message):
    sys.exit(f"{Path(sys.argv[0]).name}: {message}")


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        fail(f"{shlex.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def fetch_sysroot(folder, packages):
    """The libraries for ARM with their headers, as apt would install them on an empty machine, MuJoCo, and what dpkg-query needs."""
    stamp = folder / "packages"
    if not stamp.is_file() or stamp.read_text().split() != packages:
        fetch_packages(folder, packages)
        stamp.write_text("\n".join(packages))
    if packages is OF_PROGRAMS:  # policies need no simulator
        run(ROOT / "deploy/dev/fetch_mujoco", folder / "mujoco", "aarch64")


def fetch_packages(folder, packages):
    print("fetching libraries for ARM", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    for name in ["apt/lists/partial", "apt/archives/partial", "dpkg/info"]:
        (folder / name).mkdir(parents=True)
    (folder / "dpkg/info/format").write_text("1\n")
    options = {"APT::Architecture": "arm64", "APT::Architectures": "arm64", "APT::Sandbox::User": "root", "Debug::NoLocking": "true",
               "Dir::State::Lists": folder / "apt/lists", "Dir::State::status": "/dev/null", "Dir::Cache": folder / "apt"}
    apt = ["apt-get", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    run(*apt, "update", "--error-on=any")
    run(*apt, "install", "--yes", "--download-only", "--no-install-recommends", *packages)
    about = []
    for package in (folder / "apt/archives").glob("*.deb"):
        files = run("dpkg", "-X", package, folder).splitlines()
        about.append("Status: install ok installed\n" + run("dpkg-deb", "-f", package))
        suffix = ":arm64" if "Multi-Arch: same" in about[-1] else ""
        (folder / f"dpkg/info/{package.name.split('_')[0]}{suffix}.list").write_text("".join(f"{folder}{file[1:]}\n" for file in files))
    (folder / "dpkg/status").write_text("\n".join(about))
    shutil.rmtree(folder / "apt")


def find(library, sysroot):
    return next((path for folder in FOLDERS if (path := sysroot / folder / library).exists()), None)


def loaded(path, sysroot, of_every_system):
    """What a program or a library loads of the sysroot, and what that loads, except what every system has."""
    found, new = set(), {path}
    while new:
        names = {name for library in new for name in re.findall(r"NEEDED +(\S+)", run(f"{TARGET}-objdump", "-p", library))}
        new = {find(name, sysroot) or fail(f"no package for ARM has {name}") for name in names if not of_every_system.match(name)} - found
        found |= new
    return found


def steps(build, target, sysroot):
    """{file: (needed files, command)}: how the build folder makes a target, for ARM. Without the steps that generate code, and without
    gRPC when the sysroot has none."""
    left_out = r"_headers\.cc" if (sysroot / "usr/include/grpcpp").exists() else r"_headers\.cc|\.grpc\.pb\.cc"
    found = {}
    for command in run("ninja", "-C", build, "-t", "commands", target).replace("/./", "/").splitlines():
        made = re.search(rf" (?:-o|qc) (\S+\.o|\S+\.a|{re.escape(target)}) ", command)
        if not made or re.search(rf"({left_out})$", command):
            continue
        command = re.sub(rf" -m\S+| -Winvalid-pch| -include \S+| -[lL]\S+| -Wl,-rpath,\S+| \S+({left_out})\.o", "", command)
        command = re.sub(r"(?<!\S)/\S+/(lib[^/\s]+\.(?:so\S*|a))(?!\S)", lambda path: str(find(path[1], sysroot) or ""), command)
        command = re.sub(r"\S*/(ar|ranlib) ", rf"{TARGET}-\1 ", command)
        command = re.sub(r"\S*/(cc|c\+\+) ", lambda name: f"{TARGET}-{COMPILERS[name[1]]} --sysroot={sysroot} -idirafter /usr/include ", command)
        if made[1] == target:
            run_path = RUN_PATHS[Path(target).parts[0]]
            command = command.replace(" -o ", f" -s -Wl,-z,defs -Wl,--disable-new-dtags -Wl,-rpath,'{run_path}' -o ")
        needed = re.findall(r" (\S+\.(?:o|a|c|cc|cxx|so\.\d+\.\d+\.\d+))(?= |$)", command.replace(f" {made[1]} ", " "))
        found[made[1]] = [name for name in needed if not name.startswith(str(sysroot))], command
    return found


def write_steps(every, folder):
    lines = ["rule link", "  command = $run", "rule compile", "  command = $run", "  depfile = $out.d", "  deps = gcc"]
    for made, (needed, command) in every.items():
        rule = "compile" if made.endswith(".o") else "link"
        lines += [f"build {made}: {rule} {' '.join(needed)}", "  run = " + command.replace("$", "$$")]
    folder.mkdir(exist_ok=True)
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")


def build_for_arm(build, out, packages, targets):
    """Makes targets of a build folder in OUT/steps."""
    for program, package in {"apt-get": "apt", f"{TARGET}-g++": f"g++-{TARGET}"}.items():
        if not shutil.which(program):
            fail(f"{program} is missing (Debian's package {package})")
    fetch_sysroot(out / "sysroot", packages)
    every = {}
    for target in targets:
        every.update(steps(build, target, out / "sysroot"))
    write_steps(every, out / "steps")
    print(f"building {' '.join(targets)} for {TARGET}", flush=True)
    run("ninja", "-C", out / "steps")
# SPDX-License-Identifier: Apache-2.0
