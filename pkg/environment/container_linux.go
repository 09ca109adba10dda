package environment

import (
	"os"
	"slices"
	"strings"

	"github.com/benchpin/benchpin/pkg/record"
)

// container looks for the traces that container managers leave inside. Evidence names the trace, never its content: names of
// control groups hold container IDs, which often are host names.
func (c *collector) container() {
	var kinds, evidence []string
	found := func(kind, trace string) {
		kinds = append(kinds, kind)
		evidence = append(evidence, trace)
	}
	for _, f := range []struct{ path, kind string }{
		{"/.dockerenv", "docker"},
		{"/run/.containerenv", "podman"},
		{"/var/run/secrets/kubernetes.io", "kubernetes"},
	} {
		if _, err := os.Lstat(c.root + f.path); err == nil {
			found(f.kind, f.path+" exists")
		}
	}
	if c.getenv("KUBERNETES_SERVICE_HOST") != "" {
		found("kubernetes", "environment variable KUBERNETES_SERVICE_HOST is set")
	}
	// systemd's convention: the manager sets the variable for process 1, and systemd writes it to the file.
	for _, f := range []struct{ trace, value string }{
		{"environment variable container", c.getenv("container")},
		{"/run/systemd/container", c.readable("/run/systemd/container")},
	} {
		if f.value == "" {
			continue
		}
		kind := "other"
		if slices.Contains([]string{"docker", "podman", "systemd-nspawn", "lxc"}, f.value) {
			kind = f.value
		} else if f.value == "lxc-libvirt" {
			kind = "lxc"
		}
		found(kind, f.trace+" is set")
	}
	group := c.readable("/proc/self/cgroup") + c.readable("/proc/1/cgroup")
	for _, g := range []struct{ part, kind string }{
		{"kubepods", "kubernetes"}, {"libpod", "podman"}, {"docker", "docker"}, {"/lxc", "lxc"}, {"crio-", "other"}, {"containerd", "other"},
	} {
		if strings.Contains(group, g.part) {
			found(g.kind, "the name of a control group has "+strings.Trim(g.part, "/-"))
		}
	}
	if mounts, err := c.mounts(); err == nil {
		for _, m := range mounts {
			if m.point == "/" && (m.fileSystem == "overlay" || m.fileSystem == "fuse-overlayfs") {
				found("other", "the root file system is "+m.fileSystem)
			}
		}
	}
	c.env.Container = record.Container{Kind: "none", Evidence: append([]string{}, evidence...)}
	// The outer manager says more than the runtime that it uses.
	for _, kind := range []string{"kubernetes", "podman", "docker", "systemd-nspawn", "lxc", "other"} {
		if slices.Contains(kinds, kind) {
			c.env.Container.Kind = kind
			return
		}
	}
}

// readable returns a file's text, or nothing.
func (c *collector) readable(path string) string {
	s, err := c.read(path)
	if err != nil {
		return ""
	}
	return s
}
