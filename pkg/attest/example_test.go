package attest_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/benchpin/benchpin/pkg/attest"
	"github.com/benchpin/benchpin/pkg/attest/fault"
	"github.com/benchpin/benchpin/pkg/attest/oci"
)

// Sign a statement about some bytes, verify the bundle with the public key, and ask whether it is about these bytes.
func ExampleVerifyBundle() {
	key, err := attest.GenerateKey(attest.ECDSAP256)
	if err != nil {
		fmt.Println(err)
		return
	}
	result := []byte("what is attested")
	subjects := []attest.Subject{attest.NewSubject("result.txt", oci.DigestsOf(result))}
	statement, err := attest.NewStatement(subjects, "https://example.com/reviewed/v1", map[string]bool{"approved": true})
	if err != nil {
		fmt.Println(err)
		return
	}
	bundle, err := attest.SignStatement(key, statement)
	if err != nil {
		fmt.Println(err)
		return
	}

	verified, err := attest.VerifyBundle(bundle, []attest.PublicKey{key.Public()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(verified.Statement.PredicateType, string(verified.Statement.Predicate))
	fmt.Println("about these bytes:", len(verified.Statement.CheckSubjects(subjects)) == 0)

	other := []attest.Subject{attest.NewSubject("result.txt", oci.DigestsOf([]byte("something else")))}
	fmt.Println("about others:", len(verified.Statement.CheckSubjects(other)) == 0)
	// Output:
	// https://example.com/reviewed/v1 {"approved":true}
	// about these bytes: true
	// about others: false
}

// Verify an archive and print its checks. A caller may append checks of its own before it asks for the verdict.
func ExampleVerifyArchive() {
	key, err := attest.GenerateKey(attest.Ed25519)
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "not-an-archive-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	v, err := attest.VerifyArchive(context.Background(), dir, []attest.PublicKey{key.Public()}, attest.Policy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()
	for _, c := range v.Checks {
		fmt.Println(c.Name, c.Class, c.OK)
	}
	fmt.Println(errors.Is(v.Err(), attest.ErrVerification), errors.Is(v.Err(), fault.FileMissing))

	_, err = attest.VerifyArchive(context.Background(), dir, nil, attest.Policy{})
	fmt.Println(errors.Is(err, attest.ErrNoKey))
	// Output:
	// content C false
	// layout C false
	// record C false
	// manifest C false
	// files C false
	// signatures C false
	// subjects C false
	// predicates C false
	// dataset H false
	// thresholds H false
	// true true
	// true
}

// A private key in cosign's format opens with its password and with no other.
func ExampleParsePrivate() {
	key, err := attest.GenerateKey(attest.ECDSAP256)
	if err != nil {
		fmt.Println(err)
		return
	}
	sealed, err := key.PrivatePEM([]byte("correct horse"))
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := attest.ParsePrivate(sealed, func() ([]byte, error) { return []byte("correct horse"), nil })
	fmt.Println(err == nil && again.Public().Hint() == key.Public().Hint())
	_, err = attest.ParsePrivate(sealed, func() ([]byte, error) { return []byte("battery staple"), nil })
	fmt.Println(errors.Is(err, attest.ErrPassword))
	// Output:
	// true
	// true
}
