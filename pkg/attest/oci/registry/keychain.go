package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/types"
	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/benchpin/benchpin/pkg/store"
)

// authFileBytes is the size of the largest file of credentials that is read.
const authFileBytes = 4 << 20

// credentials finds credentials as docker does, and where docker has none for a registry, as podman does: each by the file, or by the credential
// helper that the file names.
func credentials() authn.Keychain { return authn.NewMultiKeychain(authn.DefaultKeychain, podman{}) }

// podman finds credentials where podman keeps them. go-containerregistry looks there only on hosts where docker has no file at all.
type podman struct{}

// Resolve looks for the repository, then for the folders above it, then for the registry: podman logs in to any of them.
func (podman) Resolve(target authn.Resource) (authn.Authenticator, error) {
	for _, path := range podmanFiles(os.Getenv) {
		raw, err := store.ReadRegular(path, authFileBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("credentials of podman: %w", err)
		}
		file, err := config.LoadFromReader(strings.NewReader(string(raw)))
		if err != nil {
			return nil, fmt.Errorf("credentials of podman: %s: %w", path, err)
		}
		for key := target.String(); ; {
			var found types.AuthConfig
			// docker's own search takes an entry for any folder of the registry for one of the registry: it may be another account's.
			_, listed := file.AuthConfigs[key]
			if listed || file.CredentialsStore != "" || file.CredentialHelpers[key] != "" {
				if found, err = file.GetAuthConfig(key); err != nil {
					return nil, fmt.Errorf("credentials of podman: %s: %w", path, err)
				}
				found.ServerAddress = ""
			}
			if found != (types.AuthConfig{}) {
				return authn.FromConfig(authn.AuthConfig{Username: found.Username, Password: found.Password, Auth: found.Auth,
					IdentityToken: found.IdentityToken, RegistryToken: found.RegistryToken}), nil
			}
			slash := strings.LastIndexByte(key, '/')
			if slash < 0 {
				break
			}
			key = key[:slash]
		}
	}
	return authn.Anonymous, nil
}

// podmanFiles are podman's files of credentials, in the order in which it looks: one that REGISTRY_AUTH_FILE names is the only one.
func podmanFiles(getenv func(string) string) []string {
	if only := getenv("REGISTRY_AUTH_FILE"); only != "" {
		return []string{only}
	}
	var files []string
	if run := getenv("XDG_RUNTIME_DIR"); run != "" {
		files = append(files, filepath.Join(run, "containers", "auth.json"))
	}
	folder := getenv("XDG_CONFIG_HOME")
	if folder == "" && getenv("HOME") != "" {
		folder = filepath.Join(getenv("HOME"), ".config")
	}
	if folder != "" {
		files = append(files, filepath.Join(folder, "containers", "auth.json"))
	}
	return files
}
