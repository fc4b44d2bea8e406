// SPDX-License-Identifier: BSD-2-Clause

// Package manifest reads Shai's objects from YAML, strictly: an unknown field, a
// wrong type or a dangling reference is an error with its position in the file. The
// result is a [Bundle], the only form in which policies, facts, tasks and pipelines
// reach the monitor.
//
// The rule tags of the fields below are the schema: "required", "default=", "enum=",
// "max=" (length of texts and lists, value of numbers), "item=" (length of the texts in a
// list), "filled" (a list that is not empty if it is given), "min=" (value of numbers, by
// default 1), and "name" (a DNS label). crds/bases contains the same schema for
// Kubernetes; a test compares the two, field by field.
package manifest

import "shai.dev/monitor/policy"

// APIVersion is the only supported version.
const APIVersion = "shai.dev/v1alpha1"

// Metadata holds an object's name. Kubernetes' other metadata are ignored: see notOurs in
// decode.go.
type Metadata struct {
	// Name is unique among the objects of its kind: a DNS label, at most 63 bytes.
	Name string `json:"name" rule:"required,name"`
}

// Policy is a policy text with a name that conduits and taints refer to.
type Policy struct {
	Metadata Metadata   `json:"metadata" rule:"required"`
	Spec     PolicySpec `json:"spec" rule:"required"`
}

// PolicySpec is one policy of the policy language.
type PolicySpec struct {
	// Text holds exactly one policy. References give arguments for its parameters. A
	// hyphen in metadata.name is an underscore here.
	Text string `json:"text" rule:"required,max=65536"`
	// Mode is Enforce (accesses that the policy forbids are denied), Audit (they are
	// recorded and allowed) or Warn (as Audit, with warnings to users).
	Mode string `json:"mode,omitempty" rule:"default=Enforce,enum=Audit|Warn|Enforce"`
	// Rollout, if set, replaces the pipeline's for changes of this policy.
	Rollout *PolicyRollout `json:"rollout,omitempty"`
	// RevisionHistoryLimit is the number of earlier revisions that are kept for rollback.
	RevisionHistoryLimit int `json:"revisionHistoryLimit,omitempty" rule:"default=10,min=0,max=100"`
}

// FactSource describes where facts come from.
type FactSource struct {
	Metadata Metadata       `json:"metadata" rule:"required"`
	Spec     FactSourceSpec `json:"spec" rule:"required"`
}

// FactSourceSpec holds the origin of facts, exactly one of file, inline, redis and http, and what they
// are about.
type FactSourceSpec struct {
	File   *FactFile       `json:"file,omitempty"`
	Inline []FactStatement `json:"inline,omitzero" rule:"max=4096"`
	Redis  *FactRedis      `json:"redis,omitempty"`
	HTTP   *FactHTTP       `json:"http,omitempty"`
	// Relations, if there are any, are all that the source says. Facts that contradict them are
	// refused, and policies are compared with them.
	Relations []Relation `json:"relations,omitempty" rule:"max=256"`
}

// FactFile is a file of JSON lines, each a [FactStatement].
type FactFile struct {
	// Path begins with "/" and lies beneath the monitor's data directory.
	Path string `json:"path" rule:"required,max=4096"`
}

// FactStatement says that tuples are in a conduit: conduit says says(tuple) for each
// tuple.
type FactStatement struct {
	Conduit string `json:"conduit" rule:"required,max=1024"`
	Says    string `json:"says" rule:"required,max=64"`
	// Tuples hold texts, whole numbers and RFC 3339 times.
	Tuples []policy.Tuple `json:"tuples" rule:"max=65536"`
}

// FactRedis is a key-value store from which facts are fetched: its keys, all of them each
// time, or a stream of changes. Exactly one of Keys and Stream is given.
type FactRedis struct {
	// Socket is the path of the store's unix socket, which the monitor has to allow. $(NAME) is
	// replaced.
	Socket string      `json:"socket" rule:"required,max=4096"`
	Keys   []FactKeys  `json:"keys,omitempty" rule:"max=64"`
	Stream *FactStream `json:"stream,omitempty"`
	// IntervalSeconds is the time between two fetches. A stream is read as it changes.
	IntervalSeconds int `json:"intervalSeconds,omitempty" rule:"default=30,max=86400"`
}

// FactKeys makes facts of the members of sets, lists, strings and the fields of
// hashes: conduit says says(member).
type FactKeys struct {
	// Pattern is a key with "{name}" for the parts that Conduit uses:
	// "friends:{user}".
	Pattern string `json:"pattern" rule:"required,max=1024"`
	Conduit string `json:"conduit" rule:"required,max=1024"`
	Says    string `json:"says" rule:"required,max=64"`
}

// FactStream is a stream of changes, each applied once.
type FactStream struct {
	Key string `json:"key" rule:"required,max=1024"`
}

// FactHTTP is an address that returns JSON lines, each a [FactStatement].
type FactHTTP struct {
	// URL begins with http:// or https://, and the monitor has to allow it. $(NAME) is replaced.
	URL             string `json:"url" rule:"required,max=4096"`
	IntervalSeconds int    `json:"intervalSeconds,omitempty" rule:"default=30,max=86400"`
	// CAFile is the server's certificate authority, in PEM. If it is absent, the
	// machine's own authorities are used. $(NAME) is replaced.
	CAFile string `json:"caFile,omitempty" rule:"max=4096"`
}

// Principal is a user or a service that can authenticate.
type Principal struct {
	Metadata Metadata      `json:"metadata" rule:"required"`
	Spec     PrincipalSpec `json:"spec" rule:"required"`
}

// PrincipalSpec holds what the monitor knows about a principal.
type PrincipalSpec struct {
	// PublicKey is an Ed25519 key: 64 hexadecimal digits.
	PublicKey string `json:"publicKey" rule:"required,max=64"`
	// AllowedNamespaces, if set, are the only namespaces of Kubernetes whose pipelines know the
	// principal. The operator gives members only those that they may know; a monitor ignores it.
	AllowedNamespaces *Namespaces `json:"allowedNamespaces,omitempty"`
	// Region, if set, is the region that the principal is expected to connect from.
	Region string `json:"region,omitempty" rule:"max=63"`
	// Attributes are facts: "principals/<name>" says attribute(name, value).
	Attributes []Attribute `json:"attributes,omitempty" rule:"max=64"`
}

// Attributes is what the conduits that say the attributes of principals begin with.
const Attributes = "principals/"

// Namespaces are namespaces of Kubernetes, by name.
type Namespaces struct {
	Names []string `json:"names,omitempty" rule:"max=64,item=63"`
}

// Attribute is a known property of a principal.
type Attribute struct {
	Name  string `json:"name" rule:"required,max=64"`
	Value string `json:"value" rule:"required,max=1024"`
}

// Task is a program that runs in a sandbox.
type Task struct {
	Metadata Metadata `json:"metadata" rule:"required"`
	Spec     TaskSpec `json:"spec" rule:"required"`
}

// TaskSpec describes the program and its expected accesses.
type TaskSpec struct {
	// Command is the program and its arguments; the program is an absolute path.
	// $(NAME) is replaced.
	Command []string `json:"command" rule:"required,filled,max=256,item=32768"`
	// RuntimeName names the files and directories that the task may read and execute beside its
	// conduits: its program, interpreter and libraries. Whoever starts the monitor defines them.
	RuntimeName string `json:"runtimeName,omitempty" rule:"name"`
	// Runtime is refused. It is kept in bundles that were stored when it was allowed.
	Runtime FormerRuntime `json:"runtime,omitempty" rule:"max=64,item=4096"`
	// Environment is the program's complete environment, apart from the variables that
	// the monitor sets.
	Environment []Variable `json:"environment,omitempty" rule:"max=256"`
	// Run is Once (a program that ends) or Always (restarted when it ends).
	Run string `json:"run,omitempty" rule:"default=Always,enum=Once|Always"`
	// Parameters make one task many instances, such as a worker for each user: user, region,
	// and what the pipeline declares.
	Parameters []string `json:"parameters,omitempty" rule:"max=8,item=64"`
	// Taint is the policy that all output of the task is assumed to carry. "{user}" in an
	// argument is the value of the parameter user.
	Taint *PolicyReference `json:"taint" rule:"required"`
	// Reads and Writes name the pipeline's conduits that the task is expected to use.
	// Wrong names cost speed, but not safety.
	Reads  []string `json:"reads,omitempty" rule:"max=256,item=63"`
	Writes []string `json:"writes,omitempty" rule:"max=256,item=63"`
	// RaisesTo names the pipeline's tasks as which the running program may register again, if
	// their taint is at least as restrictive.
	RaisesTo []string `json:"raisesTo,omitempty" rule:"max=16,item=63"`
	// Resources, if set, limit the task and each of its processes.
	Resources *Resources `json:"resources,omitempty"`
}

// FormerRuntime is the list of paths with which the author of a task once chose its runtime. A
// manifest with one is refused. A stored bundle with one is still read, so that the monitor
// can start, but its task cannot.
type FormerRuntime []string

// ChooseRuntime says what to do about a FormerRuntime.
const ChooseRuntime = "write spec.runtimeName, the name of a runtime, in its place; the runtime's paths are given by the owner " +
	"of the pool (JailPool, spec.runtimes), or where the monitor is started (--runtime NAME=PATH,…)"

// Resources limit each process of a task, and the task as a whole. An absent field sets no
// limit but that of Processes, which then has a default.
type Resources struct {
	// MemoryMegabytes limits private writable memory: heap, stacks, copies.
	MemoryMegabytes int `json:"memoryMegabytes,omitempty" rule:"min=16,max=1048576"`
	// OpenFiles limits open descriptors, including the 160 that Shai reserves.
	OpenFiles int `json:"openFiles,omitempty" rule:"min=256,max=1048576"`
	// Processes limits the processes and threads of the whole task.
	Processes int `json:"processes,omitempty" rule:"min=64,max=1048576"`
	// CPUMillicores limits the processor time of the whole task, in thousandths of a processor.
	CPUMillicores int `json:"cpuMillicores,omitempty" rule:"min=10,max=1048576"`
	// TotalMemoryMegabytes limits the memory of the whole task.
	TotalMemoryMegabytes int `json:"totalMemoryMegabytes,omitempty" rule:"min=64,max=1048576"`
}

// Variable is a text with a name.
type Variable struct {
	Name  string `json:"name" rule:"required,max=64"`
	Value string `json:"value,omitempty" rule:"max=32768"`
}

// PolicyReference names a policy and gives values to its parameters.
type PolicyReference struct {
	Name      string            `json:"name" rule:"required,max=63"`
	Arguments map[string]string `json:"arguments,omitempty" rule:"max=16"`
}

// Pipeline is a set of tasks, the conduits between them, and how their policies are
// enforced.
type Pipeline struct {
	Metadata Metadata     `json:"metadata" rule:"required"`
	Spec     PipelineSpec `json:"spec" rule:"required"`
}

// PipelineSpec combines tasks and conduits.
type PipelineSpec struct {
	// Mode is shai (accesses that the offline analysis granted run natively), dynamic
	// (every access is decided when it happens, by what was read before), dynamic-lazy (the
	// same, but reads are logged and decided on at the next write), audit (accesses are
	// decided and recorded, but never denied) or baseline (nothing is enforced).
	Mode string `json:"mode,omitempty" rule:"default=shai,enum=shai|dynamic|dynamic-lazy|audit|baseline"`
	// Revocation says when a live session loses an access that changed facts forbid:
	// never (lazy) or at once (immediate).
	Revocation string `json:"revocation,omitempty" rule:"default=lazy,enum=lazy|immediate"`
	// Variables are values for $(NAME), unless the monitor's --define gives one.
	Variables []Variable `json:"variables,omitempty" rule:"max=256"`
	// Tasks are names of Task objects, in the order in which they start.
	Tasks []string `json:"tasks" rule:"required,filled,max=64,item=63"`
	// Parameters declares where parameters of tasks get their values from, beside user and
	// region.
	Parameters []Parameter `json:"parameters,omitempty" rule:"max=8"`
	// Expect lists the instances of tasks with parameters to analyse in advance.
	Expect   []Expectation `json:"expect,omitempty" rule:"max=64"`
	Conduits []Conduit     `json:"conduits,omitempty" rule:"max=256"`
	// KeyValue is the store that holds the conduits of kind tuple.
	KeyValue *KeyValue `json:"keyValue,omitempty"`
	// Pool is the JailPool that the pipeline runs on.
	Pool string `json:"pool,omitempty" rule:"default=default,name"`
	// Rollout describes how changes reach the pool's members.
	Rollout *Rollout `json:"rollout,omitempty"`
	// TaskRuns describes how tasks that run once are run on the pool's members.
	TaskRuns *TaskRuns `json:"taskRuns,omitempty"`
}

// Expectation lists the expected instances of a task.
type Expectation struct {
	Task string    `json:"task" rule:"required,max=63"`
	From FactQuery `json:"from" rule:"required"`
}

// FactQuery takes parameters from facts: every tuple of Says in Conduit makes one
// instance whose parameters are the tuple's values, in this order.
type FactQuery struct {
	Conduit    string   `json:"conduit" rule:"required,max=1024"`
	Says       string   `json:"says" rule:"required,max=64"`
	Parameters []string `json:"parameters" rule:"required,filled,max=8,item=64"`
}

// The kinds of conduits.
const (
	KindFile       = "file"
	KindTuple      = "tuple"
	KindPipe       = "pipe"
	KindChannel    = "channel"
	KindConnection = "connection"
)

// Conduit is a set of conduits of one kind. conduits.go lists the fields that a kind has.
type Conduit struct {
	Name string `json:"name" rule:"required,name"`
	Kind string `json:"kind" rule:"required,enum=file|tuple|pipe|channel|connection"`
	// Ingress marks data that comes from outside the pipeline.
	Ingress bool `json:"ingress,omitempty"`
	// Egress marks a connection by which data leaves.
	Egress bool `json:"egress,omitempty"`
	// Directory says that files made beneath the paths inherit their policy.
	Directory bool `json:"directory,omitempty"`
	// Type is the shape of what a file or tuple contains. Tasks then write it through the monitor
	// only, which reads what they write, and decides on each write. See package content.
	Type string `json:"type,omitempty" rule:"enum=access-log|conduit-ids|topics|tuples"`
	// Paths of files ("/corpus/private/{owner}/**") or keys ("profile:{owner}"). The most
	// specific one that matches determines the policy.
	Paths []ConduitPath `json:"paths,omitempty" rule:"max=256"`
	// Access lists the store's commands that read and write a tuple.
	Access *Commands `json:"access,omitempty"`
	// Slots is the number of pipes or channels, one for each worker.
	Slots int `json:"slots,omitempty" rule:"max=32"`
	// From and To are the tasks at a pipe's or channel's ends.
	From   string           `json:"from,omitempty" rule:"max=63"`
	To     string           `json:"to,omitempty" rule:"max=63"`
	Policy *PolicyReference `json:"policy,omitempty"`
	// Listen is the address ("127.0.0.1:8640") that Task accepts connections on.
	Listen string `json:"listen,omitempty" rule:"max=255"`
	// Service is where users dial the connection, as host:port ("search.example.org:443").
	// They sign it when they log in. Empty: Listen; in a Resolved pipeline it is never empty.
	Service string `json:"service,omitempty" rule:"max=255"`
	Task    string `json:"task,omitempty" rule:"max=63"`
	// Sessions is how many users may have a session of the connection at the same time. 0 means
	// DefaultSessions. Where sessions use pipes or channels, there are no more than slots.
	Sessions int `json:"sessions,omitempty" rule:"max=4096"`
}

// DefaultSessions is the number of sessions of a connection that says no other.
const DefaultSessions = 32

// ConduitPath gives a policy to the conduits that match a pattern.
type ConduitPath struct {
	// Path may contain "{name}", which matches all or the middle of a segment and can be
	// used in the policy's arguments, "*" for a segment, and a final "**" for everything
	// beneath.
	Path   string           `json:"path" rule:"required,max=4096"`
	Policy *PolicyReference `json:"policy" rule:"required"`
	// Choices are the policies that principals may choose for one file of an ingress conduit,
	// instead of Policy. Without them, nobody may.
	Choices []PolicyChoice `json:"choices,omitempty" rule:"max=16"`
}

// PolicyChoice lets one principal choose one policy for a file.
type PolicyChoice struct {
	// By is the principal. "{name}" is replaced by what the path has in its place.
	By     string           `json:"by" rule:"required,max=1024"`
	Policy *PolicyReference `json:"policy" rule:"required"`
}

// Commands are commands of the key-value store, by the access that they make to a tuple.
type Commands struct {
	Read  []string `json:"read,omitempty" rule:"max=32,item=64"`
	Write []string `json:"write,omitempty" rule:"max=32,item=64"`
}

// KeyValue describes how the monitor reaches the key-value store.
type KeyValue struct {
	// Socket is the path of the store's unix socket: that of the monitor's own store, or in mode
	// baseline one that the monitor allows. $(NAME) is replaced.
	Socket string `json:"socket" rule:"required,max=4096"`
}
