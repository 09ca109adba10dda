// Package limits holds every bound on what an archive or an attestation may make a verifier do, in one place. It holds numbers
// and nothing else. Whoever made the archive chooses sizes, counts and depths; these are the most that is believed.
package limits

const (
	// BundleBytes is the size of the largest Sigstore bundle that is read.
	BundleBytes = 4 << 20
	// JSONDepth is how deep objects and lists may stand in each other in any document read here.
	JSONDepth = 32
	// JSONValues is how many values, nested ones included, any document read here may have.
	JSONValues = 1 << 16
	// Subjects is how many subjects a statement may have.
	Subjects = 16
	// SubjectDigests is how many digests one subject may have.
	SubjectDigests = 8
	// Witnesses is how many timestamps, and how many log entries, a bundle may carry.
	Witnesses = 8
	// TimestampBytes is the size of the largest timestamp that is read from a file; real ones have some kilobytes.
	TimestampBytes = 1 << 20
	// Keys is how many public keys one verification takes.
	Keys = 64
	// KeyReferenceBytes is the length of the longest reference to a key that a program keeps.
	KeyReferenceBytes = 4096
	// KeyAnswerBytes is the size of the longest answer of a program that keeps a key, and of what it may say beside.
	KeyAnswerBytes = 1 << 20
	// KeyProgramSeconds is how long such a program may take for one answer: somebody may have to touch a token, or type a number.
	KeyProgramSeconds = 120
	// KeyFileBytes is the size of the largest key file that is read.
	KeyFileBytes = 64 << 10
	// PolicyBytes, PolicyDepth and PolicyValues bound a policy document: its size, its nesting, and how many values it may have.
	PolicyBytes  = 256 << 10
	PolicyDepth  = 16
	PolicyValues = 1 << 14
	// RootBytes is the size of the largest file of trusted roots that is read; Sigstore's own has 7 kB.
	RootBytes = 4 << 20

	// ManifestBytes is the size of the largest OCI manifest or index that is read or written; registries refuse more.
	ManifestBytes = 4 << 20
	// Layers is how many layers an archive may have.
	Layers = 1024
	// Referrers is how many bundles an archive may have.
	Referrers = 64
	// ReferrersListed is how many referrers of an archive a registry may list, of whatever kind.
	ReferrersListed = 1024
	// EntriesPartBytes is the size of a layer of a data set's entries when they are packed: 1 GiB is below what registries take in one blob
	// and in one request. It is some 25 million files.
	EntriesPartBytes = 1 << 30
	// EntriesParts is how many layers the entries may have.
	EntriesParts = 900
	// TitleBytes is the length of the longest layer title.
	TitleBytes = 255
	// BlobBytes is the size of the largest blob of an archive: 1 TiB.
	BlobBytes = 1 << 40
	// LayoutEntries is how many names the folder blobs/sha256 may have: what an archive within the limits above needs, and as many
	// again, so that left-over files are named one by one.
	LayoutEntries = 2 * (Layers + 2*Referrers + 2)
	// MemoryBlobBytes is the size of the largest blob that is held in memory; larger ones are staged in a temporary file.
	MemoryBlobBytes = 4 << 20
	// MemoryBytes is how much content of one archive is held in memory at most.
	MemoryBytes = 64 << 20
)
