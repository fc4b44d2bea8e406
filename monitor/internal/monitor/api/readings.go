// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"net/http"

	"shai.dev/monitor/internal/reading"
)

// SealedAnswer is an answer that only its reader can open.
type SealedAnswer struct {
	Sealed []byte `json:"sealed"` // a [reading.Answer]
}

func (h *Handler) reading(w http.ResponseWriter, r *http.Request) error {
	var request reading.Request
	if err := read(w, r, maxBody, &request); err != nil {
		return err
	}
	sealed, err := h.Service.Read(r.Context(), request)
	return answer(w, sealed, err)
}
