// What a loss of power would leave of a folder. failing_disk.cc, which is loaded into every process of a run, calls
// these functions; tests/chaos/lost_power.py reads what they write and rewinds the folder.
//
// DATACOM_TEST_DISK_ROOT names the folder, DATACOM_TEST_DISK_SHADOW another folder on the same file system, for:
//
//   INODE.content   the bytes of a file that are certain to be on the disk
//   INODE.entries   the entries of a folder that are certain to be on the disk: lines "d INODE NAME" or "f INODE NAME"
//   INODE.held      a hard link to the file, so that no other file gets its inode number
//
// Nothing is certain before fsync or msync returns: not the content of a file, nor its name, nor a new folder. fsync of
// a file makes its content certain, msync the range, fsync of a folder its entries. Without the two variables the
// functions only make the system call. Thread-safe; one thread at a time syncs. They abort when the shadow cannot be
// written.
#ifndef DATACOM_TESTS_CHAOS_SYNCED_STATE_H_
#define DATACOM_TESTS_CHAOS_SYNCED_STATE_H_

#include <sys/types.h>

#include <cstddef>

namespace datacom::testing {

// The system calls, with errno. What is certain afterwards is copied before the call, and recorded if it succeeds.
int SyncFileOrFolder(int fd);
int SyncMapping(void* address, size_t bytes, int flags);

// A new shared and writable mapping; its end; a new folder.
void OnMapped(void* data, size_t bytes, int fd, off_t offset);
void OnUnmapped(void* data);
void OnFolderMade(const char* path);

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_CHAOS_SYNCED_STATE_H_
// SPDX-License-Identifier: Apache-2.0
