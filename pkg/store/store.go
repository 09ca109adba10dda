// Package store is where bytes live: it opens, creates, lists and describes regular files by name, below one root.
//
// The folder is the first store. Every store passes the contract suite in storetest, and everything else in this module
// reaches data through the interfaces here, so that another place for bytes is one new file.
//
// The package never interprets what it stores, never follows a symbolic link below its root, never hides a file that
// is there, and never leaves a half-written file under its final name. It runs on Linux.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrIrregular is wrapped by errors about something that is neither a regular file nor a folder: symbolic links,
// devices, pipes, sockets. They are refused because their bytes are not below the root, or are not pinned by it.
var ErrIrregular = errors.New("not a regular file")

// ErrName is wrapped by errors about names that break the rules of [CheckName].
var ErrName = errors.New("invalid name")

// MaxName is the longest name in bytes: what a Linux path may have.
const MaxName = 4095

// MaxDepth is the largest number of elements in a name. Listing holds one descriptor open for each level.
const MaxDepth = 256

// Info describes one file as it was at one moment. All fields but Path together are the identity of the file: two
// equal identities mean that nothing wrote to the file in between (see [Info.Same]).
type Info struct {
	Path string // name below the root, as given or listed
	Size int64  // bytes
	// ModTime and ChangeTime are nanoseconds since 1970 of the last write and of the last change of content or status.
	ModTime, ChangeTime int64
	Inode, Device       uint64
}

// Same reports whether two descriptions have the same identity. A write within the time stamp granularity of the file
// system (a few milliseconds before Linux 6.13) can go unseen; a replaced file cannot, as it has another inode.
func (i Info) Same(o Info) bool {
	return i.Size == o.Size && i.ModTime == o.ModTime && i.ChangeTime == o.ChangeTime &&
		i.Inode == o.Inode && i.Device == o.Device
}

// Store is a place where files live. Names obey [CheckName]. It is safe for concurrent use. Errors about a file that
// is not there match fs.ErrNotExist.
type Store interface {
	// Open opens the regular file of that name for reading.
	Open(name string) (File, error)
	// Create begins a file of size bytes, or of unknown size where size is negative. It appears under its name, whole, or
	// never; a regular file that has the name already is replaced. Folders above it are made as needed.
	Create(name string, size int64) (Writer, error)
	// List calls yield for every regular file in the order of the raw bytes of the names, and stops at the first error,
	// which it returns as it is. Anything that is neither a regular file nor a folder is an error (ErrIrregular).
	// Temporary files of writers that were never committed are listed too: see [IsTemporary].
	List(ctx context.Context, yield func(Info) error) error
	// Stat describes the regular file of that name.
	Stat(name string) (Info, error)
}

// File is an open file. ReadAt is safe for concurrent use and obeys io.ReaderAt.
type File interface {
	io.ReaderAt
	// Info describes the file that is open now, even if its name has since come to mean another.
	Info() (Info, error)
	Close() error
}

// Writer receives the bytes of a new file in order. Exactly one of Commit and Abort ends it; Abort after Commit does
// nothing, so that it can be deferred.
type Writer interface {
	io.Writer
	// Commit gives the file its name. It fails, and nothing appears, if the number of bytes written is not the size given.
	Commit() error
	// Abort removes what was written.
	Abort() error
}

// CheckName says whether name may stand for a file: UTF-8 of 1 to [MaxName] bytes in at most [MaxDepth] elements between
// slashes, relative, without an empty, "." or ".." element and without control characters (Unicode class Cc, so NUL, line
// ends and DEL among them). The error matches ErrName.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrName)
	case len(name) > MaxName:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed: it begins with %.60q", ErrName, len(name), MaxName, name)
	case name[0] == '/':
		return fmt.Errorf("%w %q: it is absolute, expected a path relative to the root", ErrName, name)
	}
	ascii := true
	start, depth := 0, 0
	for i := 0; i <= len(name); i++ {
		if i == len(name) || name[i] == '/' {
			if e := name[start:i]; e == "" || e == "." || e == ".." {
				return fmt.Errorf("%w %q: element %q is not allowed", ErrName, name, e)
			}
			depth++
			start = i + 1
			continue
		}
		if c := name[i]; c >= utf8.RuneSelf {
			ascii = false
		} else if c < 0x20 || c == 0x7f {
			return fmt.Errorf("%w %q: control character 0x%02x", ErrName, name, c)
		}
	}
	if depth > MaxDepth {
		return fmt.Errorf("%w %.60q: %d elements, at most %d are allowed", ErrName, name, depth, MaxDepth)
	}
	if ascii {
		return nil
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("%w %q: it is not UTF-8", ErrName, name)
	}
	if i := strings.IndexFunc(name, unicode.IsControl); i >= 0 {
		return fmt.Errorf("%w %q: control character at byte %d", ErrName, name, i)
	}
	return nil
}

const temporaryPrefix = ".benchpin-tmp-"

// IsTemporary reports whether the last element of name is one that writers of a folder use before Commit. Such a file is
// left over when a process was killed; nothing but the writer that made it needs it.
func IsTemporary(name string) bool {
	return strings.HasPrefix(name[strings.LastIndexByte(name, '/')+1:], temporaryPrefix)
}
