package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Surroundings are what a process was started in, each a name and what this process has there.
type Surroundings struct {
	// Job must be the same in all processes, Host in all processes of one host.
	Job, Host map[string]string
	// Told may differ: all are told where it does.
	Told map[string]string
}

// Surrounded compares what processes were started in: Job and Told with process 0, Host with the first process of the same host. All get the
// same answer: an error that wraps ErrDisagree and names what differs in Job or Host as Handshake does, or nil and what differs in Told,
// empty where nothing does. It does not end the world.
func (w *World) Surrounded(ctx context.Context, s Surroundings) (told string, err error) {
	fields := map[string]string{}
	for prefix, of := range map[string]map[string]string{prefixJob: s.Job, prefixHost: s.Host, prefixTold: s.Told} {
		for name, value := range of {
			fields[prefix+name] = value
		}
	}
	var text string
	err = w.exchange(ctx, fields, func(all []map[string]string) string { return surroundings(all, w.NodeOf) }, &text)
	if err != nil || text == "" {
		return "", err
	}
	var said [2]string
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		return "", fmt.Errorf("cluster: what differs between processes: %w", err)
	}
	if said[0] != "" {
		return "", fmt.Errorf("%w: %s", ErrDisagree, said[0])
	}
	return said[1], nil
}

// What the names of fields begin with on their way to process 0.
const prefixJob, prefixHost, prefixTold = "job ", "host ", "told "

// surroundings is a document of two texts, what must not differ and what may; empty where nothing differs.
func surroundings(all []map[string]string, node func(int) string) string {
	var ranks []int
	var hosts []string
	onHost := map[string][]int{}
	for r := range all {
		ranks = append(ranks, r)
		if onHost[node(r)] == nil {
			hosts = append(hosts, node(r))
		}
		onHost[node(r)] = append(onHost[node(r)], r)
	}
	with := func(prefix string) []map[string]string {
		some := make([]map[string]string, len(all))
		for r, fields := range all {
			some[r] = map[string]string{}
			for name, value := range fields {
				if name, is := strings.CutPrefix(name, prefix); is {
					some[r][name] = value
				}
			}
		}
		return some
	}
	refused := differing(with(prefixJob), ranks, node)
	ofHosts := with(prefixHost)
	for _, h := range hosts {
		refused = append(refused, differing(ofHosts, onHost[h], node)...)
	}
	said := [2]string{list(refused), list(differing(with(prefixTold), ranks, node))}
	if said == [2]string{} {
		return ""
	}
	doc, err := json.Marshal(said)
	if err != nil {
		return "" // texts can always be written
	}
	return string(doc)
}
