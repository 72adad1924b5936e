"""Takes from a folder what a loss of power would take: everything that was not synced (synced_state.h records what was)."""
import os
import shutil

PAGE = 4096


class Disk:
    """The folder `root`, in which processes write with `environment`. `choose` is a random.Random."""

    def __init__(self, root, shadow, library, choose):
        self.shadow, self.choose = shadow, choose
        self.environment = {"LD_PRELOAD": library, "DATACOM_TEST_DISK_ROOT": root, "DATACOM_TEST_DISK_SHADOW": shadow}
        self.kept, self.lost, self.places = 0, 0, {}
        os.makedirs(root)
        os.mkdir(shadow)

    def lose_power(self, folder, kept, spared=()):
        """Rewinds `folder`, in which no process may write during the call, to what is on the disk for certain.

        With the probability `kept` a page, or the list of a folder's entries, was written although it was not synced. Entries of
        `folder` that `spared` names stay. Returns how many pages and lists of entries are lost.
        """
        self.kept, self.lost = kept, 0
        self.places = {os.stat(folder).st_ino: folder}  # of everything that is in the folder now
        for path, folders, files in os.walk(folder):
            self.places.update((os.lstat(place).st_ino, place) for place in (os.path.join(path, name) for name in folders + files))
        rebuilt = os.path.join(self.shadow, "rebuilt")
        os.mkdir(rebuilt)
        self._rebuild(os.stat(folder).st_ino, rebuilt, spared)
        for entry in list(os.scandir(folder)):
            if entry.name not in spared:
                (shutil.rmtree if entry.is_dir() else os.remove)(entry.path)
        for name in os.listdir(rebuilt):
            os.rename(os.path.join(rebuilt, name), os.path.join(folder, name))
        os.rmdir(rebuilt)
        self._sync(folder, spared)
        return self.lost

    def _record(self, inode, kind):
        return os.path.join(self.shadow, f"{inode}.{kind}")

    def _rebuild(self, inode, target, spared=()):
        certain, now = self._certain_entries(inode), {}
        if inode in self.places:
            now = {entry.name: ("d" if entry.is_dir() else "f", entry.inode()) for entry in os.scandir(self.places[inode])}
        for name in spared:
            certain.pop(name, None)
            now.pop(name, None)
        if certain != now and self.choose.random() >= self.kept:
            now = certain
            self.lost += 1
        for name, (kind, number) in sorted(now.items()):
            path = os.path.join(target, name)
            if kind == "d":
                os.mkdir(path)
                self._rebuild(number, path)
            else:
                with open(path, "wb") as file:
                    file.write(self._content(number))

    def _certain_entries(self, inode):
        if not os.path.exists(self._record(inode, "entries")):
            return {}
        with open(self._record(inode, "entries"), encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(" ", 2) for line in file]
        return {name: (kind, int(number)) for kind, number, name in lines}

    def _content(self, inode):
        certain, now = _read(self._record(inode, "content")), _read(self.places.get(inode) or self._record(inode, "held"))
        if certain == now:
            return certain
        pages = []
        size = len(now if self.choose.random() < self.kept else certain)
        for at in range(0, size, PAGE):
            page, newer = (content[at:min(at + PAGE, size)].ljust(min(PAGE, size - at), b"\0") for content in (certain, now))
            if page != newer and self.choose.random() < self.kept:
                page = newer
            pages.append(page)
        content = b"".join(pages)
        self.lost += max(1, sum(content[at:at + PAGE] != now[at:at + PAGE] for at in range(0, len(now), PAGE))) if content != now else 0
        return content

    def _sync(self, folder, spared=()):
        """Everything in the folder is on the disk now."""
        entries = list(os.scandir(folder))
        with open(self._record(os.stat(folder).st_ino, "entries"), "w", encoding="utf-8") as file:
            file.writelines(f"{'d' if entry.is_dir() else 'f'} {entry.inode()} {entry.name}\n" for entry in entries)
        for entry in entries:
            if entry.name in spared:
                continue
            if entry.is_dir():
                self._sync(entry.path)
                continue
            held = self._record(entry.inode(), "held")
            if os.path.exists(held):  # of a removed file, whose inode this file has
                os.remove(held)
            os.link(entry.path, held)
            shutil.copyfile(entry.path, self._record(entry.inode(), "content"))


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""
# SPDX-License-Identifier: Apache-2.0
