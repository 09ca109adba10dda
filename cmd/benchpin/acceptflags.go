package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/sigstore"
)

// acceptFlags say whom to believe, and what is demanded: keys, a policy, and whom to trust beside keys.
type acceptFlags struct {
	keys   []string
	policy policyFlags
	trust  trustFlags
}

// addTrust adds the flags for keys, roots and identities; those of policies are policyFlags'.
func (f *acceptFlags) addTrust(cmd *cobra.Command, keyUsage string) {
	cmd.Flags().StringArrayVar(&f.keys, "key", nil, keyUsage)
	f.trust.add(cmd)
	f.trust.addIdentity(cmd)
}

// given reports whether anybody was named.
func (f *acceptFlags) given() bool {
	return len(f.keys) > 0 || f.policy.file != "" || f.trust != trustFlags{}
}

// resolve returns the keys to verify with and what is demanded, from the policy file and the flags together; nobody accepts that nobody is
// named.
func (f *acceptFlags) resolve(ctx context.Context, a *app, nobody bool) ([]attest.PublicKey, attest.Policy, error) {
	none := attest.Policy{}
	p, err := f.policy.demands()
	if err != nil {
		return nil, none, err
	}
	trusted, err := f.trust.trusted()
	if err != nil {
		return nil, none, err
	}
	for _, who := range trusted.Identities {
		if err := who.Check(); err != nil {
			return nil, none, usagef("--certificate-identity, --certificate-oidc-issuer: %w", err)
		}
	}
	var d *attest.PolicyDocument
	if f.policy.file != "" {
		d, err = attest.LoadPolicy(f.policy.file)
		if errors.Is(err, attest.ErrPolicy) {
			return nil, none, &usageError{err}
		}
		if err != nil {
			return nil, none, err
		}
		if trusted, err = d.AcceptTrusted(trusted); err != nil {
			return nil, none, &usageError{err}
		}
	}
	var keys []attest.PublicKey
	if enough := (d != nil && len(d.Keys) > 0) || len(trusted.Identities) > 0 || nobody; len(f.keys) > 0 || !enough {
		if keys, err = a.publicKeys(ctx, f.keys); err != nil {
			return nil, none, err
		}
	}
	if d != nil {
		if keys, err = d.Accept(keys); err != nil {
			return nil, none, &usageError{err}
		}
		p = d.Policy.And(p)
	}
	p.Trusted = trusted
	if len(trusted.Identities) > 0 && trusted.Root == nil {
		where := "--trusted-root FILE"
		if d != nil {
			where = "trusted_root in " + f.policy.file + ", or " + where
		}
		return nil, none, usagef("whoever is accepted by certificate is certified by somebody who is trusted: expected %s", where)
	}
	p.Witness, err = witness(trusted)
	if err != nil && d != nil && trusted.Root != nil {
		err = &usageError{fmt.Errorf("%s: %w", f.policy.file, err)}
	}
	return keys, p, err
}

// witness is who judges what third parties added; nil where nobody is to be trusted.
func witness(t attest.Trusted) (attest.Witness, error) {
	w, err := sigstore.NewWitness(t)
	if errors.Is(err, sigstore.ErrRoots) || errors.Is(err, sigstore.ErrIdentity) {
		return nil, &usageError{err}
	}
	return w, err
}
