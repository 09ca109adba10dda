package workload

import (
	"fmt"
	"strings"
	"testing"
)

// TestDiscreet: a credential is in no output, whether its key exists, is misspelt, or has a value that cannot be.
func TestDiscreet(t *testing.T) {
	const secret = "SECRETxyz99"
	told := func(r *Resolved, err error) string {
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(r.Warnings, r.Overrides) + string(r.Composed) + string(r.Canonical)
	}
	for _, set := range []string{
		"storage.storage_options.aws_session_token=" + secret, "storage.storage_options.secret_acess_key=" + secret, "storage.secret=" + secret,
		"storage.storage_options.secret_access_key={" + secret + ": 1}", "storage.storage_options.secret_access_key=[" + secret + "]",
		"storage.storage_options.secret_access_key=" + secret, "storage={storage_options: {token: " + secret + "}}", "storage.storage_options={x: " + secret + "}",
		"storage.storage_options.endpoint_url=http://user:" + secret + "@host", "storage.storage_options.endpoint_url=http://host/?k=" + secret,
		"benchpin.password=" + secret, "storage.storage_options.secret_access_key='" + secret,
	} {
		for _, o := range []Options{{Set: []string{set}}, {Set: []string{set}, Strict: true}, {Overrides: []string{"++workload." + set}}, {Overrides: []string{set}},
			{Overrides: []string{"workload." + set}}} {
			if got := told(Load(Source{Name: "w.yaml", Data: []byte("framework: pytorch\nreader: {data_loader: pytorch}\n")}, o)); strings.Contains(got, secret) {
				t.Errorf("%+v: %s", o, got)
			}
		}
	}
	for _, line := range []string{"secret_acess_key: " + secret, "secret_access_key: {a: " + secret + "}", "aws: {session: {token: " + secret + "}}", "endpoint_url: 'http://u:" + secret + "@h'"} {
		for _, strict := range []bool{false, true} {
			got := told(Load(Source{Name: "w.yaml", Data: []byte("framework: pytorch\nreader: {data_loader: pytorch}\nstorage: {storage_options: {" + line + "}}\n")}, Options{Strict: strict}))
			if strings.Contains(got, secret) {
				t.Errorf("%s: %s", line, got)
			}
		}
	}
	for _, shown := range []string{"++workload.storage.storage_options.region=eu", "++workload.train.epochs=2", "workload.storage.storage_options.endpoint_url=http://a:1,http://b:1"} {
		if got := discreet(shown); got != shown {
			t.Errorf("%s is shown as %s", shown, got)
		}
	}
}
