"""Hugging Face's hub: pushes the policies of a run with their card, film and records, and loads such a policy. Needs huggingface_hub.

  python -m datacom.hub RUN OWNER/NAME [--licence apache-2.0] [--private] [--epoch best]
  python -m datacom.hub RUN --out FOLDER       writes what would be pushed

The hub's own variables apply: HF_TOKEN, HF_ENDPOINT, HF_HOME.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from datacom import _files, card
from datacom.policy import Policy
from datacom.runs import Run

_KEPT = ("experiment.textproto", "build.txt", "progress.csv", "episodes.csv", "film.html")
_OWN = ("README.md", "member_*.policy", *_KEPT)  # what `write` writes, as patterns


def write(run: Run, folder: str | os.PathLike[str], *, repository: str = "OWNER/NAME", licence: str = "", epoch: str | int = "best") -> None:
    """Writes what is pushed: README.md (the card), member_N.policy of each member, and the run's records. Such files of a run before are removed, all
    others stay. licence: an identifier that the hub knows, for example "apache-2.0"; empty: none. epoch: "best", "last" or a number. Raises ValueError
    as Policy.load, for a run folder, and for a record that is a link: in a stranger's run it could name any file of yours."""
    target = Path(folder)
    if (target / "run_id").exists():
        raise ValueError(f"{target} is a run folder, whose records would be replaced; name another one")
    for name in _KEPT:
        if (run.path / name).is_symlink():
            raise ValueError(f"{run.path / name} is a link, which is not published; put what it names in its place")
    target.mkdir(parents=True, exist_ok=True)
    members = [f"member_{member}.policy" for member in range(len(run.seeds))]
    kept = [name for name in _KEPT if (run.path / name).is_file()]
    for member, name in enumerate(members):
        Policy.load(run.path, member, epoch).save(target / name)
    for name in kept:
        shutil.copy(run.path / name, target / name)
    use = f'from datacom import hub\n    policy = hub.from_pretrained("{repository}")'
    (target / "README.md").write_text(card.card(run, licence=licence, use=use), encoding="utf-8")
    for pattern in _OWN:
        for file in target.glob(pattern):
            if file.name not in ("README.md", *members, *kept):
                file.unlink()


def push(run: Run | str | os.PathLike[str], repository: str, *, licence: str = "", private: bool = False, epoch: str | int = "best") -> str:
    """Makes the repository OWNER/NAME where it is new, replaces what a push before wrote by what `write` writes, and returns the address of the commit.
    Other files stay. Raises what huggingface_hub raises."""
    import huggingface_hub

    run = run if isinstance(run, Run) else Run(run)
    api = huggingface_hub.HfApi()
    with tempfile.TemporaryDirectory(prefix="datacom-") as folder:
        write(run, folder, repository=repository, licence=licence, epoch=epoch)
        api.create_repo(repository, private=private, exist_ok=True)
        done = api.upload_folder(repo_id=repository, folder_path=folder, commit_message=f"{run.name}, epoch {epoch}", delete_patterns=list(_OWN))
    return str(done.commit_url)


def from_pretrained(repository: str, member: int = 0, *, revision: str | None = None) -> Policy:
    """The policy of a member in a repository that `push` made, from the hub or from the local cache. Raises what huggingface_hub raises."""
    import huggingface_hub

    return Policy(huggingface_hub.hf_hub_download(repository, f"member_{member}.policy", revision=revision))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m datacom.hub", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="run folder")
    parser.add_argument("repository", nargs="?", help="OWNER/NAME")
    parser.add_argument("--licence", default="", help="of the policies, as the hub names it")
    parser.add_argument("--private", action="store_true", help="make a private repository")
    parser.add_argument("--epoch", default="best", help="best, last or a number (best)")
    parser.add_argument("--out", help="folder to write instead of pushing")
    flags = parser.parse_args()
    if (flags.out is None) == (flags.repository is None):
        parser.error("name a repository, or --out FOLDER")
    if flags.out is not None:
        write(Run(flags.run), flags.out, licence=flags.licence, epoch=flags.epoch)
    else:
        print(push(flags.run, flags.repository, licence=flags.licence, private=flags.private, epoch=flags.epoch))


if __name__ == "__main__":
    _files.command(main)
# SPDX-License-Identifier: Apache-2.0
