package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchpin/benchpin/pkg/live"
	"github.com/benchpin/benchpin/pkg/manifest"
	"github.com/benchpin/benchpin/pkg/pipeline"
	"github.com/benchpin/benchpin/pkg/store"
)

// liveFlags are the flags of the commands that run, for those who want to see it while it goes on.
type liveFlags struct {
	file    string
	metrics string
}

func (f *liveFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "live", "", "`file` or named pipe that a line of JSON is appended to each second of the timed part; one that holds something else is left alone")
	cmd.Flags().StringVar(&f.metrics, "metrics", "", "`[ADDRESS]:PORT` of an endpoint for Prometheus, until the command ends; without an address this host alone reaches it")
}

// start opens what the flags ask for and adds it to what is shown already. data is the folder of the data set, which nothing may be written
// to, and others are files and folders that the command writes itself. end stops it; it may be called more than once. Of the processes of
// a job the first one alone opens something.
func (f *liveFlags) start(a *app, n *pipeline.Notify, data string, others ...string) (end func(), err error) {
	var show []func(live.Sample)
	if n.Live != nil {
		show = append(show, n.Live)
	}
	var closers []func() error
	if a.process != nil && a.process.World().Rank() > 0 {
		return func() {}, nil
	}
	end = func() {
		for _, c := range closers {
			_ = c() // what was written was written, and what was not has been said
		}
		closers = nil
	}
	if f.file == "-" {
		return end, usagef("--live -: standard output is the result; expected a file or a named pipe")
	}
	if f.file != "" {
		if err := pipeline.ApartFromData(data, f.file, "--live"); err != nil {
			return end, err
		}
		if err := f.apart(others); err != nil {
			return end, err
		}
		file, err := live.OpenFile(f.file)
		if err != nil {
			return end, err
		}
		closers = append(closers, file.Close)
		show = append(show, func(s live.Sample) {
			if err := file.Write(s); err != nil {
				n.Stage("live     %v", err)
			}
		})
	}
	if f.metrics != "" {
		exporter, stop, err := f.serve(n)
		if err != nil {
			end()
			return end, err
		}
		closers = append(closers, stop)
		show = append(show, exporter.Show)
	}
	n.Live = func(s live.Sample) {
		for _, one := range show {
			one(s)
		}
	}
	return end, nil
}

// apart refuses a file that the command writes itself, or that lies in a folder that is the command's.
func (f *liveFlags) apart(others []string) error {
	for _, other := range others {
		if other == "" || pipeline.IsBucket(other) {
			continue
		}
		inside, err := store.Inside(other, f.file)
		if err != nil {
			return fmt.Errorf("--live %s: %w", f.file, err)
		}
		if inside {
			return usagef("--live %s: %s is written, or read, by this command for something else; choose another file", f.file, other)
		}
	}
	return nil
}

// ofLayout are the files and folders that a pipeline or a replay writes below its folder.
func ofLayout(dir string) []string {
	l := pipeline.Layout{Dir: dir}
	m := l.Manifest()
	return []string{m, manifest.EntriesPath(m), manifest.GroupsPath(m), filepath.Dir(l.Run("any")), l.Checkpoints(), l.Archive(), l.Certificate(), l.PrivateKey(), l.PublicKey(), l.Journal()}
}

// serve starts the endpoint for Prometheus.
func (f *liveFlags) serve(n *pipeline.Notify) (*live.Exporter, func() error, error) {
	host, port, err := net.SplitHostPort(f.metrics)
	if err != nil {
		return nil, nil, usagef("--metrics %q: expected [ADDRESS]:PORT, such as :9464: %w", f.metrics, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, nil, usagef("--metrics %q: expected a port from 0 to 65535, found %q", f.metrics, port)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	var unknown *net.DNSError
	if errors.As(err, &unknown) && unknown.IsNotFound {
		return nil, nil, usagef("--metrics %q: expected an address of this host before the port: %w", f.metrics, err)
	} else if err != nil {
		return nil, nil, fmt.Errorf("--metrics %s: %w", f.metrics, err)
	}
	exporter, err := live.NewExporter()
	if err != nil {
		return nil, nil, errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", exporter)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			n.Stage("metrics  %v; nothing is served any more", err)
		}
	}()
	n.Stage("metrics  http://%s/metrics", listener.Addr())
	return exporter, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return errors.Join(server.Shutdown(ctx), server.Close())
	}, nil
}
