// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"shai.dev/monitor/internal/monitor/api"
)

// Gate lets to the page only who holds a link to it. A link carries a ticket, which the page
// exchanges, once, for a token that its further requests carry in a header.
// Nothing is answered to another host than the site's, the empty page neither.
//
// The token is no cookie: a browser sends the cookies of 127.0.0.1 to every port of it, so that
// another user of the machine could collect them with a server of his own. The ticket is in the
// link's fragment, which browsers send to no server. Since nothing of this is sent by itself, pages
// of other sites cannot use it either, whatever names they resolve to this address.
type Gate struct {
	host    string              // of the page, with the port: the only one that it answers to
	renewed func(ticket string) // told each ticket that can be used, one after the other
	now     func() time.Time

	mu      sync.Mutex
	ticket  digest
	windows []window // that have exchanged a ticket, the latest last
	wrong   allowance
}

// digest is the hash of a secret: what is kept, and compared, of it.
type digest = [sha256.Size]byte

// window is a window of a browser.
type window struct {
	token digest
	used  time.Time
}

// openLink is the remedy of whoever came without a link.
const openLink = "open a new link: shai explain --browser prints one, and the monitor keeps one in STATE/page-link"

const (
	maxWindows = 16             // beyond, the one that was not used for longest is forgotten
	maxIdle    = 12 * time.Hour // after which a window needs another link
	maxTicket  = 1 << 10        // bytes of a request for a token
)

// NewGate returns the gate of a site, without windows, and tells the first ticket.
func NewGate(site *Site, renewed func(ticket string)) *Gate {
	g := &Gate{host: site.Host, renewed: renewed, now: time.Now, wrong: allowance{burst: 10, each: 6 * time.Second}}
	g.renew()
	return g
}

// renew makes another ticket.
func (g *Gate) renew() {
	ticket := rand.Text()
	g.ticket = sha256.Sum256([]byte(ticket))
	g.renewed(ticket)
}

// before lets requests through that carry a token.
func (g *Gate) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !given || !g.knows(token) {
			g.refuse(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// enter exchanges the ticket for a token.
func (g *Gate) enter(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Ticket string `json:"ticket"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTicket)).Decode(&request)
	if err != nil {
		fail(w, api.Invalid("exchange a ticket", "open the link again", "the request is damaged: %v", err))
		return
	}
	token, ok := g.exchange(request.Ticket)
	if !ok {
		g.refuse(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"token": token})
}

func (g *Gate) exchange(ticket string) (token string, ok bool) {
	given := sha256.Sum256([]byte(ticket))
	g.mu.Lock()
	defer g.mu.Unlock()
	if subtle.ConstantTimeCompare(given[:], g.ticket[:]) != 1 {
		return "", false
	}
	token = rand.Text()
	g.windows = append(g.windows, window{sha256.Sum256([]byte(token)), g.now()})
	if len(g.windows) > maxWindows {
		g.windows = g.windows[1:]
	}
	g.renew()
	return token, true
}

// knows reports whether a window holds the token.
func (g *Gate) knows(token string) bool {
	given := sha256.Sum256([]byte(token))
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, one := range g.windows {
		if subtle.ConstantTimeCompare(given[:], one.token[:]) != 1 {
			continue
		}
		g.windows = append(g.windows[:i], g.windows[i+1:]...)
		if g.now().Sub(one.used) > maxIdle {
			return false
		}
		one.used = g.now()
		g.windows = append(g.windows, one)
		return true
	}
	return false
}

// refuse answers who holds no token: after a burst, with 429 for some time. It delays nothing, and
// who holds the right one is not affected. What keeps tokens from being guessed is their length.
func (g *Gate) refuse(w http.ResponseWriter) {
	g.mu.Lock()
	allowed := g.wrong.take(g.now())
	g.mu.Unlock()
	problem := &api.Problem{Title: "open the page", Status: http.StatusUnauthorized,
		Detail: "this window holds no token, or its link was used before",
		Remedy: openLink}
	if !allowed {
		retryAfter(w, g.wrong.each)
		problem.Status, problem.Detail = http.StatusTooManyRequests, "too many wrong tokens were given"
	}
	fail(w, problem)
}

// allowance limits how often something happens: a burst, then once in a while.
type allowance struct {
	burst   int
	each    time.Duration // until one more is allowed
	used    int
	counted time.Time
}

func (a *allowance) take(now time.Time) bool {
	if regained := int(now.Sub(a.counted) / a.each); regained > 0 {
		a.used, a.counted = max(0, a.used-regained), now
	}
	if a.used >= a.burst {
		return false
	}
	a.used++
	return true
}
