package oci

import (
	"errors"
	"strings"
	"testing"

	"github.com/benchpin/benchpin/pkg/attest/fault"
)

// TestParseArchiveOfOthers: an artifact of another program is said to be one, whatever else its manifest has that archives have not.
func TestParseArchiveOfOthers(t *testing.T) {
	const digest = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
	for name, raw := range map[string]string{
		"artifact": `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/vnd.example","config":` +
			`{"mediaType":"application/vnd.oci.empty.v1+json","digest":"` + digest + `","size":2,"data":"e30="},"layers":[]}`,
		"image": `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":` +
			`"application/vnd.oci.image.config.v1+json","digest":"` + digest + `","size":2},"layers":[]}`,
		"index": `{"schemaVersion":2,"manifests":[]}`,
	} {
		if _, err := ParseArchive([]byte(raw)); !errors.Is(err, fault.MediaType) || !strings.Contains(err.Error(), "no archive of benchpin") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseArchive([]byte(`{"artifactType":"` + ArtifactType + `","more":1}`)); err == nil || errors.Is(err, fault.MediaType) {
		t.Errorf("an archive with more in it: %v", err)
	}
}
