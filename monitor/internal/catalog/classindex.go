// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"sync"

	"shai.dev/monitor/policy"
)

// classIndex finds the classes of one bundle. Classes are only added, so all states of
// the bundle share it and leave out classes that are newer than they are.
type classIndex struct {
	mu       sync.RWMutex
	keys     map[string]uint32 // classRecord.key
	sets     map[string][]uint32
	policies map[string][]uint32 // with their arguments
	names    map[string][]uint32 // with any
}

func newClassIndex() *classIndex {
	return &classIndex{keys: make(map[string]uint32), sets: make(map[string][]uint32),
		policies: make(map[string][]uint32), names: make(map[string][]uint32)}
}

// add lists a class under its key. A retired class (without a policy) is found by key
// only.
func (x *classIndex) add(key string, number uint32, set, name string, bound *policy.Policy) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keys[key] = number
	if bound == nil {
		return
	}
	x.sets[set] = append(x.sets[set], number)
	var arguments []string
	for _, value := range bound.Arguments() {
		arguments = append(arguments, value)
	}
	at := string(appendPolicyKey(nil, set, name, arguments))
	x.policies[at] = append(x.policies[at], number)
	at = string(appendPolicyKey(nil, set, name, nil))
	x.names[at] = append(x.names[at], number)
}

func (x *classIndex) number(key string) (uint32, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	number, ok := x.keys[key]
	return number, ok
}

func (x *classIndex) bySet(set string) []uint32 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.sets[set]
}

// byName lists the classes of a set whose policy has this name. The caller must not alter the list.
func (x *classIndex) byName(set, name string) []uint32 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var buffer [256]byte
	return x.names[string(appendPolicyKey(buffer[:0], set, name, nil))]
}

// byPolicy appends the classes of a set whose policy has this name and one of the lists of
// arguments.
func (x *classIndex) byPolicy(classes []uint32, set, name string, lists [][]string) []uint32 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var buffer [256]byte
	for _, arguments := range lists {
		key := appendPolicyKey(buffer[:0], set, name, arguments)
		classes = append(classes, x.policies[string(key)]...)
	}
	return classes
}

// appendPolicyKey joins its arguments with a byte that neither names nor UTF-8 texts contain.
func appendPolicyKey(key []byte, set, name string, arguments []string) []byte {
	key = append(append(append(key, set...), 0xff), name...)
	for _, argument := range arguments {
		key = append(append(key, 0xff), argument...)
	}
	return key
}
