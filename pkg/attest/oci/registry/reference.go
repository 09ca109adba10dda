package registry

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Reference is where an archive stands: HOST[:PORT]/REPOSITORY with a tag, a digest, or neither.
type Reference struct {
	repo   name.Repository
	tag    string // "" is none
	digest string // "sha256:..." or ""
}

// IsReference reports whether a text looks like a reference, and not like a path: its first element has a dot or a colon, or is localhost,
// and something follows it.
func IsReference(text string) bool {
	host, rest, found := strings.Cut(text, "/")
	if !found || rest == "" || host == "" || host == "." || host == ".." {
		return false
	}
	return strings.ContainsAny(host, ".:") || host == "localhost"
}

// ParseReference reads HOST[:PORT]/REPOSITORY[:TAG][@sha256:DIGEST].
func ParseReference(text string) (Reference, error) {
	// The form of a repository's name in the OCI distribution specification, "Pulling manifests".
	repositoryName := regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	rest, digest, pinned := strings.Cut(text, "@")
	host, path, _ := strings.Cut(rest, "/")
	path, tag, tagged := strings.Cut(path, ":")
	bad := func(err error) (Reference, error) {
		return Reference{}, fmt.Errorf("%q: %w: expected HOST[:PORT]/REPOSITORY[:TAG] or HOST[:PORT]/REPOSITORY@sha256:DIGEST: %v", text, ErrReference, err)
	}
	if before, after, found := strings.Cut(text, "://"); found && !strings.ContainsAny(before, "/@") {
		return bad(fmt.Errorf("write %s, without %s://", after, before))
	}
	if !IsReference(host + "/" + path) {
		return bad(errors.New("it does not begin with a host, such as ghcr.io or localhost:5000"))
	}
	if !repositoryName.MatchString(path) {
		return bad(fmt.Errorf("repository %q: expected lower-case letters, digits, single . _ - between them, and /", path))
	}
	repo, err := name.NewRepository(host+"/"+path, name.StrictValidation)
	if err != nil {
		return bad(err)
	}
	if tagged {
		if _, err := name.NewTag(repo.Name()+":"+tag, name.StrictValidation); err != nil {
			return bad(err)
		}
	}
	if pinned {
		if _, err := name.NewDigest(repo.Name()+"@"+digest, name.StrictValidation); err != nil {
			return bad(err)
		}
	}
	return Reference{repo: repo, tag: tag, digest: digest}, nil
}

// String is the reference in its full form.
func (r Reference) String() string {
	s := r.repo.Name()
	if r.tag != "" {
		s += ":" + r.tag
	}
	if r.digest != "" {
		s += "@" + r.digest
	}
	return s
}

// Pinned is the reference of content with a digest in the same repository.
func (r Reference) Pinned(digest string) string { return r.repo.Name() + "@" + digest }
