// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"net/http"

	"shai.dev/monitor/internal/audit"
)

// AuditLog is the part of *audit.Log that the interface reads.
type AuditLog interface {
	// Query calls each for every matching record, oldest first. With query.Follow
	// it goes on until ctx ends, then returns nil.
	Query(ctx context.Context, query audit.Query, each func(audit.Record) error) error
	// Verify checks the whole chain.
	Verify(ctx context.Context) (audit.Verification, error)
}

// Handler is everything the server answers with.
type Handler struct {
	Service Service
	Audit   AuditLog
	Metrics http.Handler // the Prometheus exposition
}
