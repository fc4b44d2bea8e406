// SPDX-License-Identifier: BSD-2-Clause

// Package sources reads what a report is made of: results and samples of measurements,
// objects as kubectl prints them, audit records. Each text is known by its content.
package sources

import (
	"encoding/json"
	"maps"
	"time"

	"shai.dev/monitor/internal/audit"
)

// All is everything that was given.
type All struct {
	Results      []Results
	Sessions     []Sessions
	Samples      []Samples
	Loads        []Load
	Verification *Verification
	Analyses     []AnalysisRun
	Pipelines    []Pipeline
	Tasks        []Task
	Denials      []audit.Record
	Recorded     bool // audit records were given, if only allowed ones or none

	cells int // of the tables, at most Room
}

// Results are the results of a benchmark, as loadgen writes them.
type Results struct {
	Name            string              `json:"-"` // of the Benchmark, or the file
	Namespace       string              `json:"-"` // of the Benchmark; empty for a file
	Format          int                 `json:"format"`
	Size            Size                `json:"size"`
	Seed            int64               `json:"seed"`
	Machine         Machine             `json:"machine"`
	Throughput      []Throughput        `json:"throughput"`
	AddedPerSession map[string]Estimate `json:"addedPerSession"`
	Latency         []Latency           `json:"latency"`
	Notes           []string            `json:"notes"` // what the measurement could not do
	Beside          *BesideSearches     `json:"beside"`
	Slices          []Slice             `json:"samples"`
	Text            []byte              `json:"-"` // as it was given
}

// Size says how much was measured.
type Size struct {
	Name            string   `json:"name"`
	Documents       int64    `json:"documents"`
	Users           int64    `json:"users"`
	Rounds          int      `json:"rounds"`
	SliceSeconds    float64  `json:"slice_seconds"`
	ConcurrentUsers int      `json:"concurrent_users"`
	Modes           []string `json:"modes"`
	Seed            int64    `json:"seed"`
	// Phases, if there are any, change the number of users during a slice, and a share of
	// users comes from another region than the analysis expects.
	Phases       []json.RawMessage `json:"phases"`
	Mispredicted float64           `json:"mispredicted"`
	// BusyCycles is there if an engine that picks documents at random took the search engine's
	// place, after it had kept a processor busy for so many cycles.
	BusyCycles *int64 `json:"busyCycles"`
}

// Machine describes where it was measured.
type Machine struct {
	System          string `json:"system"`
	Processor       string `json:"processor"`
	Cores           int    `json:"cores"`
	MemoryMegabytes int64  `json:"memoryMegabytes"`
}

// BesideSearches counts what other tasks did while users searched. A pipeline may have none of them.
type BesideSearches struct {
	Support *struct {
		Read         int64              `json:"read"`   // documents of users
		Logged       int64              `json:"logged"` // new entries of the log of accesses
		Refused      int64              `json:"refused"`
		Milliseconds map[string]float64 `json:"milliseconds"` // an access, by "p50", "p99"
	} `json:"support"`
	Interests *struct {
		Users          int64 `json:"users"`
		Advertisements int64 `json:"advertisements"`
	} `json:"interests"`
}

// Throughput has the figures of all modes at one session length.
type Throughput struct {
	SessionLength int
	Modes         map[string]Mode
}

// Mode has the figures of a mode. Those that compare it are nil for mode baseline, and all that were not measured.
type Mode struct {
	QueriesPerSecond      *Estimate           `json:"queriesPerSecond"`
	CPUMicrosPerQuery     *Estimate           `json:"cpuMicrosPerQuery"`
	LatencyMilliseconds   map[string]Estimate `json:"latencyMilliseconds"` // by "p50", "p99"
	DriverShare           float64             `json:"driverShare"`
	Overhead              *Estimate           `json:"overhead"`
	CPUOverhead           *Estimate           `json:"cpuOverhead"`
	AddedCPUMicrosPerItem *Estimate           `json:"addedCpuMicrosPerQuery"`
}

// Latency is the distribution of a mode's latencies at one session length.
type Latency struct {
	Mode          string    `json:"mode"`
	SessionLength int       `json:"sessionLength"`
	Bounds        []float64 `json:"boundsMilliseconds"` // upper bounds, ascending
	Counts        []int64   `json:"counts"`             // one for each bound, and one for what is above
}

// Sessions is a session.json of bench-session.
type Sessions struct {
	Size               Size                 `json:"size"`
	Machine            Machine              `json:"machine"`
	ByProcess          map[string]ByProcess `json:"by_process"`
	PerSecond          map[string]Estimate  `json:"sessions_per_second"`
	DriverShare        map[string]float64   `json:"driver_share"`
	Unsealed           *string              `json:"unsealed"`
	AddedSession       *Estimate            `json:"added_cpu_us_per_session"`
	AddedProcess       *Estimate            `json:"added_cpu_us_per_session_process"`
	Login              *Estimate            `json:"ed25519_cpu_us_per_session"`
	Isolating          *Estimate            `json:"isolating_cpu_us_per_session"`
	IsolatingRolled    *Estimate            `json:"isolating_cpu_us_per_session_rolled_back"`
	Deciding           *Estimate            `json:"deciding_cpu_us_per_session"`
	ControlSession     *Estimate            `json:"control_us_per_session"`
	ControlQuery       *Estimate            `json:"control_us_per_query"`
	AddedQuery         *Estimate            `json:"added_cpu_us_per_query"`
	Interception       *Estimate            `json:"cpu_us_per_interception"`
	InterceptionEager  *Estimate            `json:"cpu_us_per_interception_dynamic"`
	InterceptionLazily *Estimate            `json:"cpu_us_per_interception_dynamic_lazy"`
	Beside             *Beside              `json:"beside"`
	Live               *Live                `json:"live"`
	LiveProcess        *Live                `json:"live_process"`
	Text               []byte               `json:"-"`
}

// Beside compares mode shai with that of another version, which was measured in the same rounds.
type Beside struct {
	Commit string    `json:"commit"`
	Rate   *Estimate `json:"sessions_per_second_ratio"` // how many times the other's this version serves
	Saved  *Estimate `json:"saved_cpu_us_per_session"`
}

// ByProcess has the CPU time of a session in µs by process.
type ByProcess struct {
	CPU map[string]float64 `json:"cpu_us_per_session"`
}

// Live says what many sessions at a time took.
type Live struct {
	Live      int     `json:"live"`
	Memory    float64 `json:"memory_kib_per_session"`
	Revoked   int     `json:"revoked"`
	RevokedMS float64 `json:"revoked_ms"`
}

// Samples is a file with a row for each slice.
type Samples struct {
	Name   string
	Slices []Slice
	Text   []byte
}

// Slice is what the report shows of a row.
type Slice struct {
	Mode           string             `json:"mode"`
	SessionLength  int                `json:"session_length"`
	Sessions       float64            `json:"sessions"`
	ProcessSeconds map[string]float64 `json:"process_cpu_seconds"` // CPU time by process
}

// Equal tells whether two slices have the same figures.
func (s Slice) Equal(other Slice) bool {
	return s.Mode == other.Mode && s.SessionLength == other.SessionLength && s.Sessions == other.Sessions &&
		maps.Equal(s.ProcessSeconds, other.ProcessSeconds)
}

// Verification is what a leak attempt found.
type Verification struct {
	Leak struct {
		Baseline struct {
			Leaked bool `json:"leaked"`
		} `json:"baseline"`
		Shai struct {
			Leaked bool `json:"leaked"`
		} `json:"shai"`
		Document string       `json:"document"`
		Audit    audit.Record `json:"audit"`
	} `json:"leak"`
}

// AnalysisRun is an object of this kind.
type AnalysisRun struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Pipeline string `json:"pipeline"`
	} `json:"spec"`
	Status AnalysisStatus `json:"status"`
}

// Metadata names an object.
type Metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// AnalysisStatus is what the report shows of its status.
type AnalysisStatus struct {
	StartTime            time.Time `json:"startTime"`
	DurationMilliseconds int64     `json:"durationMilliseconds"`
	Expected             int64     `json:"expected"`
	Granted              int64     `json:"granted"`
	Refused              int64     `json:"refused"`
	Undecided            int64     `json:"undecided"`
	Members              []struct {
		Instances int64 `json:"instances"`
	} `json:"members"`
	Accesses []struct {
		Task           string `json:"task"`
		Access         string `json:"access"`
		Conduits       string `json:"conduits"`
		Granted        int64  `json:"granted"`
		Refused        int64  `json:"refused"`
		Undecided      int64  `json:"undecided"`
		RefusedBecause []struct {
			Policy string `json:"policy"`
			Count  int64  `json:"count"`
		} `json:"refusedBecause"`
	} `json:"accesses"`
}

// Pipeline is what the report shows of a pipeline.
type Pipeline struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Tasks    []string  `json:"tasks"`
		Conduits []Conduit `json:"conduits"`
	} `json:"spec"`
}

// Conduit is a set of conduits of a pipeline.
type Conduit struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Ingress bool   `json:"ingress"`
	Egress  bool   `json:"egress"`
	From    string `json:"from"`
	To      string `json:"to"`
	Task    string `json:"task"`
}

// Task is what the report shows of a task.
type Task struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Parameters []string `json:"parameters"`
		Reads      []string `json:"reads"`
		Writes     []string `json:"writes"`
	} `json:"spec"`
}
